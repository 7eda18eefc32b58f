"""A plan and its source -> an array that holds the tiling, or a region of it: new, or the caller's.

Memory first, and the number of threads: meanwhile other code may run. Then the last look at the input and `out`
(see arguments.pyx), then bytes.
"""

import math

import numpy

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX, PyDataType_REFCHK
from tilecore._core.plan.plan cimport Bounds, Plan, Sizes, sizes_check, sizes_init
from tilecore._core.request.arguments cimport blank_itemsize, check_out, has_shape, is_blank
from tilecore._core.request.integers cimport as_tuple, read_integers, read_signed
from tilecore._core.request.places cimport Place, place_note
from tilecore._core.resources.memory cimport check_size, new_array, no_memory
from tilecore._core.write.execute cimport TILECORE_NOGIL_BYTES, Mode
from tilecore._core.write.whole cimport choose_mode, execute_plan
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.regions cimport execute_region
from tilecore._core.write.signals cimport raise_pending

from tilecore._core.request.refusals import Refusal

cnp.import_array()


cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm, cnp.dtype dtype):
    """Where a result goes for which there is no `out`."""
    if nbytes == 0 and is_blank(dtype):
        return blank_strings(as_tuple(shape, ndim), dtype)
    return new_array(ndim, <Py_ssize_t *>shape, dtype, nbytes, warm)


cdef blank_bytes(tuple shape, cnp.dtype dtype):
    return math.prod(shape) * blank_itemsize(dtype)


cdef cnp.ndarray emptied(cnp.ndarray out):
    """`out` for a result of no bytes: it may have room for a character of each string."""
    if cnp.PyArray_NBYTES(out):
        (<object>out).fill((<object>out.descr).type())
    return out


cdef cnp.ndarray blank_strings(tuple shape, cnp.dtype dtype):
    nbytes = blank_bytes(shape, dtype)
    check_size(min(nbytes, PY_SSIZE_T_MAX))
    try:
        return numpy.zeros(shape, dtype)
    except (MemoryError, ValueError):
        raise no_memory(nbytes) from None


# ---------------------------------------------------------------- the whole, or a region

cdef cnp.ndarray write_result(const Plan *plan, cnp.ndarray array, const Bounds *bounds, cnp.ndarray out, int threads):
    """The tiling of `array`, within `bounds` unless NULL; in `out`, which read_out has read, or new where that is None.
    """
    cdef const Sizes *sizes = &plan.sizes
    cdef const Py_ssize_t *input_shape = &sizes.shape[sizes.ndim - sizes.input_ndim]
    cdef const Py_ssize_t *shape = &sizes.output[0]
    cdef const Py_ssize_t *start = NULL
    cdef Py_ssize_t of_region[MAX_RANK + 1]
    cdef Py_ssize_t nbytes = sizes.nbytes
    cdef cnp.dtype dtype = array.descr
    cdef bint is_new = out is None, refers = PyDataType_REFCHK(dtype), warm = True
    cdef Place source, target
    cdef Mode mode = Mode(1, False, False)
    cdef int status
    if bounds != NULL:
        start = &bounds.start[0]
        shape = &of_region[0]
        nbytes = measure_region(plan, bounds, of_region)
    if is_new:
        out = new_result(sizes.ndim, shape, nbytes, &warm, dtype)
    if nbytes >= TILECORE_NOGIL_BYTES and not refers:
        mode = choose_mode(nbytes, threads, warm)
    # The last look at the arrays: until the bytes are written, no other code runs.
    if not has_shape(array, sizes.input_ndim, input_shape):
        raise Refusal(ValueError, "changed its shape during the call", "input")
    place_note(&source, array)
    if is_new:
        place_note(&target, out)
    else:
        check_out(out, shape, sizes.ndim, sizes.itemsize, &source, input_shape, &target)
    if nbytes == 0:
        return out if is_new else emptied(out)
    if refers and not (is_new and can_be_counted(dtype)):
        copy_references(sizes, array, &source, out, &target, start, shape)
    elif refers or nbytes < TILECORE_NOGIL_BYTES:
        execute_part(plan, &source, &target, start, shape, nbytes, mode)
        if refers:
            count_references(array, &source, sizes.copies if start == NULL else 0, out)
    else:
        with nogil:
            status = execute_part(plan, &source, &target, start, shape, nbytes, mode)
        if status < 0:
            raise_pending()
    return out


cdef inline int execute_part(const Plan *plan, const Place *source, const Place *target, const Py_ssize_t *start,
                             const Py_ssize_t *shape, Py_ssize_t nbytes, Mode mode) noexcept nogil:
    if start == NULL:
        return execute_plan(plan, source, target, mode)
    return execute_region(&plan.sizes, source, target, start, shape, nbytes, mode)


# ---------------------------------------------------------------- bounds

cdef int read_bounds(Bounds *bounds, start, stop, bint signed) except -1:
    """Before every look at the array: reading may run code that changes the array."""
    if signed:
        bounds.starts = read_signed(start, bounds.start, "start")
        bounds.stops = read_signed(stop, bounds.stop, "stop")
    else:
        bounds.starts = read_integers(start, bounds.start, "start", 0)
        bounds.stops = read_integers(stop, bounds.stop, "stop", 0)
    return 0


cdef Py_ssize_t measure_region(const Plan *plan, const Bounds *bounds, Py_ssize_t *shape) except -1:
    """Note the shape of a region that lies in the tiling, or in the plane; its bytes, which can be counted."""
    cdef const Sizes *sizes = &plan.sizes
    cdef Sizes of_region
    cdef Py_ssize_t first, last
    cdef int k
    if bounds.starts != sizes.ndim or bounds.stops != sizes.ndim:
        what, n = ("stop", bounds.stops) if bounds.starts == sizes.ndim else ("start", bounds.starts)
        axes = "the input" if plan.endless else f"the result's shape {as_tuple(sizes.output, sizes.ndim)}"
        raise Refusal(ValueError, f"must have {sizes.ndim} entries, one for each axis of {axes}, got {n}", what)
    for k in range(sizes.ndim):
        first, last = bounds.start[k], bounds.stop[k]
        if plan.endless:
            check_axis_of_plane(k, sizes.shape[k], first, last)
        elif not first <= last <= sizes.output[k]:
            raise Refusal(ValueError, f"expected 0 <= start <= stop <= {sizes.output[k]} on axis {k}, got "
                          f"start {first}, stop {last}")
        shape[k] = last - first
    sizes_check(&of_region, sizes_init(&of_region, sizes.ndim, shape, 0, NULL, sizes.itemsize))
    return of_region.nbytes


cdef int check_axis_of_plane(int k, Py_ssize_t extent, Py_ssize_t first, Py_ssize_t last) except -1:
    if first > last:
        raise Refusal(ValueError, f"expected start <= stop on axis {k}, got start {first}, stop {last}")
    if first < 0 and last > PY_SSIZE_T_MAX + first:
        raise Refusal(ValueError, f"axis {k} overflows: from {first} to {last} are more than "
                      f"{PY_SSIZE_T_MAX} elements")
    if first < last and extent == 0:
        raise Refusal(ValueError, f"axis {k} of the input is empty, but the region has "
                      f"{last - first} elements along it")
    return 0
