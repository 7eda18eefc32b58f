"""A plan and a source -> an array that holds the tiling, or a region of it: a new array, or the caller's.

    allocate        a new array, unless there is `out`; other code may run meanwhile
    choose_options  reads the number of threads; other code may run meanwhile
    look            where the arrays lie; the last checks of the source's shape and of `out` (see arguments.pyx)
    write           bytes, or items that hold references

A small new result takes none of these steps: see small.pyx.
"""

import numpy

cimport numpy as cnp

from tilecore._core.numpy_api cimport PyDataType_REFCHK
from tilecore._core.plan.plan cimport Plan, input_shape, plan_check, plan_init
from tilecore._core.plan.regions cimport Bounds, plan_region
from tilecore._core.request.arguments cimport check_out
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.overlaps cimport share_bytes
from tilecore._core.resources.memory cimport check_size, new_array, no_memory_error
from tilecore._core.strided_arrays cimport StridedArray, has_shape, locate_array
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.small cimport TILECORE_NOGIL_BYTES
from tilecore._core.write.tiling cimport WriteOptions, choose_options, write_region, write_tiling

from tilecore._core.request.errors import RequestError, shape_changed

cnp.import_array()


cdef struct Call:
    const Plan *plan            # of the whole tiling
    const Py_ssize_t *start     # of a region; NULL for the whole tiling
    const Py_ssize_t *shape     # of the result
    Py_ssize_t nbytes           # of the result
    WriteOptions options        # set by choose_options; the next two by `look`
    StridedArray source
    StridedArray target


cdef cnp.ndarray make_large(const Plan *plan, cnp.dtype dtype, cnp.ndarray source, cnp.ndarray out, int threads):
    """The tiling, in `out` or in a new array; for results that make_small did not make."""
    cdef Call call
    call.plan, call.start, call.nbytes = plan, NULL, plan.nbytes
    call.shape = &plan.output[0]
    return execute(&call, dtype, source, out, threads)


cdef cnp.ndarray make_region(const Plan *plan, const Bounds *bounds, cnp.dtype dtype, cnp.ndarray source,
                             cnp.ndarray out, int threads):
    """Return the region `bounds` of the tiling, as make_result."""
    cdef Call call
    cdef Plan region
    if plan_region(&region, plan, bounds):
        return make_result(&region, dtype, source, out, threads)
    call.plan, call.nbytes = plan, region.nbytes
    call.start = &bounds.start[0]
    call.shape = &region.output[0]
    return execute(&call, dtype, source, out, threads)


cdef cnp.ndarray execute(Call *call, cnp.dtype dtype, cnp.ndarray source, cnp.ndarray out, int threads):
    cdef bint is_new = out is None, prefaulted = True
    if is_new:
        out = allocate(call.plan.ndim, call.shape, call.nbytes, dtype, &prefaulted)
    choose_options(&call.options, call.nbytes, threads, prefaulted, PyDataType_REFCHK(dtype))
    look(call, source, out, is_new)
    if call.nbytes == 0:
        return out
    if PyDataType_REFCHK(dtype):
        write_references(call, source, out, is_new and can_be_counted(dtype))
    elif call.nbytes < TILECORE_NOGIL_BYTES:
        write(call)
    else:
        write_without_gil(call)
    return out


cdef cnp.ndarray allocate(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, cnp.dtype dtype, bint *prefaulted):
    """Return a new array. Garbage may be collected, so other code may run."""
    cdef Plan plan
    if dtype.itemsize or dtype.kind not in b"SU":
        return new_array(ndim, <Py_ssize_t *>shape, dtype, nbytes, prefaulted)
    # NumPy makes strings of length 0 strings of length 1. Not by numpy.dtype((type, 1)), which runs Python code.
    dtype = numpy.dtype((<object>dtype).str[:2] + "1")
    cdef int status = plan_init(&plan, ndim, shape, 0, NULL, dtype.itemsize)
    plan_check(&plan, status)
    check_size(plan.nbytes)
    try:
        return numpy.zeros(as_tuple(shape, ndim), dtype)
    except MemoryError:
        raise no_memory_error(plan.nbytes) from None


cdef int look(Call *call, cnp.ndarray source, cnp.ndarray out, bint is_new) except -1:
    """Look where the arrays lie, and check them. No other code runs from here until the bytes are written."""
    cdef const Plan *plan = call.plan
    if not has_shape(source, plan.input_ndim, input_shape(plan)):
        raise shape_changed()
    locate_array(&call.source, source)
    if is_new:
        locate_array(&call.target, out)
        return 0
    check_out(out, call.shape, plan.ndim, plan.itemsize, &call.target)
    if share_bytes(&call.source, input_shape(plan), &call.target, call.shape, plan.itemsize):
        raise RequestError(ValueError, "must not share memory with the input", "out")
    return 0


cdef int write_references(Call *call, cnp.ndarray source, cnp.ndarray out, bint as_bytes) except -1:
    if not as_bytes:
        return copy_references(call.plan, source, &call.source, out, &call.target, call.start, call.shape)
    write(call)
    return count_references(source, &call.source, 0 if call.start != NULL else call.plan.copies, out)


cdef int write_without_gil(Call *call) except -1:
    with nogil:
        return write(call)


cdef inline int write(Call *call) except -1 nogil:
    """Write the bytes; raise what a signal handler raised."""
    if call.start == NULL:
        return write_tiling(call.plan, &call.source, &call.target, &call.options)
    return write_region(call.plan, &call.source, &call.target, call.start, call.shape, &call.options)
