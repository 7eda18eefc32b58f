# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A tiling and its source -> an array that holds it, or a region of it: new, or the caller's.

The last checks are made here, of `out` or of the size; then memory, then bytes. While memory is sought, and
while the number of threads is asked for, other code may run, and give the input another shape or take its
memory away: so where its bytes lie is noted first, and checked last (see arguments.pyx).
"""

import math

import numpy

cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX, PyDataType_REFCHK
from tilecore._core.plan.plan cimport Bounds, Plan
from tilecore._core.plan.sizes cimport Sizes, sizes_check, sizes_init
from tilecore._core.request.arguments cimport check_out
from tilecore._core.request.integers cimport as_tuple, read_integers, read_signed
from tilecore._core.request.places cimport Held, Place, held_note, place_note
from tilecore._core.resources.memory cimport check_size, new_array
from tilecore._core.write.execute cimport TILECORE_NOGIL_BYTES, Mode, raise_pending
from tilecore._core.write.plans cimport choose_mode, execute_plan, execute_plan_region
from tilecore._core.write.references cimport Leaves, leaves_of, write_references
from tilecore._core.write.walk cimport check_held

from tilecore._core.request.refusals import Refusal

cnp.import_array()


cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm, cnp.dtype dtype):
    """Where a result goes for which there is no `out`."""
    if nbytes == 0 and dtype.itemsize == 0 and dtype.kind in b"SU":
        return blank_strings(as_tuple(shape, ndim), dtype)
    check_size(nbytes)
    result = new_array(ndim, <Py_ssize_t *>shape, dtype, nbytes, warm)
    if result is None:
        raise no_memory(nbytes)
    return result


cdef cnp.ndarray blank_strings(tuple shape, cnp.dtype dtype):
    """A new array of strings of no characters: NumPy gives each of them room for one."""
    nbytes = math.prod(shape) * numpy.dtype(((<object>dtype).type, 1)).itemsize
    check_size(min(nbytes, PY_SSIZE_T_MAX))
    try:
        return numpy.zeros(shape, dtype)
    except (MemoryError, ValueError):
        raise no_memory(nbytes) from None


cdef no_memory(nbytes):
    return Refusal(MemoryError, f"no memory for a result of {nbytes} bytes")


cdef struct Job:        # one result: what is noted of it before anything else may run
    Held source         # the caller holds both arrays and their dtypes
    Held target
    Place place         # where the items of the target lie
    bint is_new
    bint warm


cdef inline void job_note(Job *job, const Sizes *sizes, cnp.ndarray array, cnp.ndarray out, Py_ssize_t nbytes) noexcept:
    held_note(&job.source, array, sizes.input_nbytes)
    job.is_new = out is None
    if not job.is_new:
        held_note(&job.target, out, nbytes)


cdef cnp.ndarray place_for(Job *job, int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, cnp.dtype dtype,
                           const Sizes *sizes, const Place *source, cnp.ndarray out):
    """The array that is to hold the result, `out` or a new one."""
    if job.is_new:
        out = new_result(ndim, shape, nbytes, &job.warm, dtype)
        place_note(&job.place, out)
        held_note(&job.target, out, nbytes)
        return out
    job.warm = True
    if check_out(out, shape, ndim, sizes.itemsize, source, &sizes.shape[sizes.ndim - sizes.input_ndim], &job.place):
        check_held(&job.source, &job.target)
    return out


# ---------------------------------------------------------------- the whole

cdef cnp.ndarray write_whole(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads):
    """The whole tiling of `array`, in `out`, which read_out has read, or in a new array where that is None."""
    cdef Place source
    place_note(&source, array)
    return whole_at(plan, &source, array, out, threads)


cdef cnp.ndarray whole_at(const Plan *plan, const Place *source, cnp.ndarray array, cnp.ndarray out, int threads):
    """Of the items at `source`, in the memory of `array`."""
    cdef const Sizes *sizes = &plan.sizes
    cdef cnp.dtype dtype = array.descr, of_result = dtype if out is None else out.descr
    cdef bint counted = PyDataType_REFCHK(dtype)
    cdef Leaves leaves
    cdef cnp.ndarray result
    cdef Job job
    cdef Mode mode
    cdef int status
    job_note(&job, sizes, array, out, sizes.nbytes)
    leaves = leaves_of(dtype) if counted else None
    result = place_for(&job, sizes.ndim, sizes.output, sizes.nbytes, of_result, sizes, source, out)
    if sizes.nbytes == 0:
        pass
    elif counted:
        write_with_references(plan, &job, source, NULL, sizes.output, leaves, threads)
    elif sizes.nbytes < TILECORE_NOGIL_BYTES:
        execute_plan(plan, source, &job.place, Mode(1, False, False))
    else:
        mode = choose_mode(plan, sizes.nbytes, threads, job.warm)
        check_held(&job.source, &job.target)
        with nogil:
            status = execute_plan(plan, source, &job.place, mode)
        if status < 0:
            raise_pending()
    return result


cdef int write_with_references(const Plan *plan, const Job *job, const Place *source, const Py_ssize_t *start,
                     const Py_ssize_t *shape, Leaves leaves, int threads) except -1:
    """Items that hold references."""
    cdef Py_ssize_t nbytes = job.target.nbytes
    try:
        write_references(&plan.sizes, source, &job.place, &job.source, &job.target, start, shape, leaves, job.is_new,
                         choose_mode(plan, nbytes, threads, False))
    except MemoryError:  # NumPy's: a string, a copy of the source
        raise no_memory(nbytes) from None
    return 0


# ---------------------------------------------------------------- a region

cdef int read_bounds(Bounds *bounds, start, stop, bint signed) except -1:
    """Before every look at the array: reading may run code that changes the array."""
    if signed:
        bounds.starts = read_signed(start, bounds.start, "start")
        bounds.stops = read_signed(stop, bounds.stop, "stop")
        return 0
    bounds.starts = read_integers(start, bounds.start, "start", 0)
    bounds.stops = read_integers(stop, bounds.stop, "stop", 0)
    return 0


cdef int check_lengths(const Plan *plan, const Bounds *bounds) except -1:
    """That there is a start and a stop for each axis."""
    cdef const Sizes *sizes = &plan.sizes
    if bounds.starts == sizes.ndim and bounds.stops == sizes.ndim:
        return 0
    what, n = ("stop", bounds.stops) if bounds.starts == sizes.ndim else ("start", bounds.starts)
    axes = "the input" if plan.endless else f"the result's shape {as_tuple(sizes.output, sizes.ndim)}"
    raise Refusal(ValueError, f"must have {sizes.ndim} entries, one for each axis of {axes}, got {n}", what)


cdef int check_bounds(const Plan *plan, const Bounds *bounds, Py_ssize_t *shape) except -1:
    """The shape of a region that lies in the tiling."""
    cdef const Sizes *sizes = &plan.sizes
    cdef const Py_ssize_t *first = &bounds.start[0]
    cdef const Py_ssize_t *last = &bounds.stop[0]
    cdef int k
    for k in range(sizes.ndim):
        if not first[k] <= last[k] <= sizes.output[k]:
            raise Refusal(ValueError, f"expected 0 <= start <= stop <= {sizes.output[k]} on axis {k}, got "
                          f"start {first[k]}, stop {last[k]}")
        shape[k] = last[k] - first[k]
    return 0


cdef int check_bounds_in_plane(const Plan *plan, const Bounds *bounds, Py_ssize_t *shape) except -1:
    """The shape of a region anywhere in the plane, of which the bytes can be counted."""
    cdef const Sizes *sizes = &plan.sizes
    cdef const Py_ssize_t *first = &bounds.start[0]
    cdef const Py_ssize_t *last = &bounds.stop[0]
    cdef Sizes of_region
    cdef int k, status
    for k in range(sizes.ndim):
        if first[k] > last[k]:
            raise Refusal(ValueError, f"expected start <= stop on axis {k}, got start {first[k]}, stop {last[k]}")
        if first[k] < 0 and last[k] > PY_SSIZE_T_MAX + first[k]:
            raise Refusal(ValueError, f"axis {k} overflows: from {first[k]} to {last[k]} are more than "
                          f"{PY_SSIZE_T_MAX} elements")
        shape[k] = last[k] - first[k]
        if shape[k] and not sizes.shape[k]:
            raise Refusal(ValueError, f"axis {k} of the input is empty and tiles no plane, but the region has "
                          f"{shape[k]} elements along it")
    status = sizes_init(&of_region, sizes.ndim, shape, 0, NULL, sizes.itemsize)
    return sizes_check(&of_region, status)


cdef cnp.ndarray write_region(const Plan *plan, cnp.ndarray array, const Bounds *bounds, cnp.ndarray out, int threads):
    """The region [start, stop) of the tiling of `array`; `out` as in `whole`."""
    cdef const Sizes *sizes = &plan.sizes
    cdef const Py_ssize_t *first = &bounds.start[0]
    cdef const Py_ssize_t *last = &bounds.stop[0]
    cdef Py_ssize_t shape[MAX_RANK + 1]
    cdef Py_ssize_t nbytes = sizes.itemsize
    cdef cnp.dtype dtype = array.descr, of_result = dtype if out is None else out.descr
    cdef bint counted = PyDataType_REFCHK(dtype)
    cdef Leaves leaves
    cdef cnp.ndarray result
    cdef Place source
    cdef Job job
    cdef Mode mode
    cdef int k, status
    place_note(&source, array)
    check_lengths(plan, bounds)
    if plan.endless:
        check_bounds_in_plane(plan, bounds, shape)
    else:
        check_bounds(plan, bounds, shape)
    for k in range(sizes.ndim):
        nbytes *= shape[k]
    job_note(&job, sizes, array, out, nbytes)
    leaves = leaves_of(dtype) if counted else None
    result = place_for(&job, sizes.ndim, shape, nbytes, of_result, sizes, &source, out)
    if nbytes == 0:
        pass
    elif counted:
        write_with_references(plan, &job, &source, first, shape, leaves, threads)
    elif nbytes < TILECORE_NOGIL_BYTES:
        execute_plan_region(plan, &source, &job.place, first, last, nbytes, Mode(1, False, False))
    else:
        mode = choose_mode(plan, nbytes, threads, job.warm)
        check_held(&job.source, &job.target)
        with nogil:
            status = execute_plan_region(plan, &source, &job.place, first, last, nbytes, mode)
        if status < 0:
            raise_pending()
    return result
