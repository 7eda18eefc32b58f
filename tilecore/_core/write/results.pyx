"""A plan and a source -> an array that holds the tiling, or a region of it: a new array, or the caller's.

    allocate        a new array, unless there is `out`; other code may run meanwhile
    choose_options  reads the number of threads; other code may run meanwhile
    look            where the arrays lie; the last checks of the source's shape and of `out` (see arguments.pyx)
    write           bytes, or items that hold references

A small new result takes none of these steps: see small.pyx.
"""

import numpy

cimport numpy as cnp

from tilecore._core.config cimport TILECORE_NOGIL_BYTES
from tilecore._core.numpy_api cimport PyDataType_REFCHK
from tilecore._core.plan.plan cimport Plan, input_shape, plan_tiling
from tilecore._core.request.arguments cimport check_out
from tilecore._core.request.overlaps cimport share_bytes
from tilecore._core.resources.memory cimport new_array
from tilecore._core.strided_arrays cimport StridedArray, has_shape, locate_array
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.signals cimport raise_on_error
from tilecore._core.write.tiling cimport WriteOptions, choose_options, write_tiling

from tilecore._core.request.errors import RequestError, shape_changed

cnp.import_array()


cdef cnp.ndarray make_any(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads):
    """The result in `out` or in a new array: what make_small did not make."""
    cdef cnp.dtype dtype = array.descr
    cdef bint is_new = out is None, prefaulted = True, references = PyDataType_REFCHK(dtype)
    cdef StridedArray source, target
    cdef WriteOptions options
    cdef int status

    if is_new:
        out = allocate(plan.ndim, plan.output, plan.nbytes, dtype, &prefaulted)
    choose_options(&options, plan.nbytes, threads, prefaulted, references)

    # No other code runs from here until the bytes are written.
    if not has_shape(array, plan.input_ndim, input_shape(plan)):
        raise shape_changed()
    locate_array(&source, array)
    if is_new:
        locate_array(&target, out)
    else:
        check_out(out, plan.output, plan.ndim, plan.itemsize, &target)
        if share_bytes(&source, input_shape(plan), &target, plan.output, plan.itemsize):
            raise RequestError(ValueError, "must not share memory with the input", "out")

    if plan.nbytes == 0:
        return out
    if references and not (is_new and can_be_counted(dtype)):
        copy_references(plan, array, &source, out, &target)
        return out
    if references or plan.nbytes < TILECORE_NOGIL_BYTES:
        status = write_tiling(plan, &source, &target, &options)
    else:
        with nogil:
            status = write_tiling(plan, &source, &target, &options)
    raise_on_error(status)
    if references:
        count_references(array, plan.copies, out)
    return out


cdef cnp.ndarray allocate(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, cnp.dtype dtype, bint *prefaulted):
    """Return a new array. Garbage may be collected, so other code may run."""
    cdef Plan plan
    if dtype.itemsize or dtype.kind not in b"SU":
        return new_array(ndim, <Py_ssize_t *>shape, dtype, nbytes, prefaulted)
    # NumPy makes strings of length 0 strings of length 1. Not by numpy.dtype((type, 1)), which runs Python code.
    dtype = numpy.dtype((<object>dtype).str[:2] + "1")
    plan_tiling(&plan, ndim, shape, 0, NULL, dtype.itemsize)
    array = new_array(ndim, <Py_ssize_t *>shape, dtype, plan.nbytes, prefaulted)
    cnp.PyArray_FILLWBYTE(array, 0)
    return array
