# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A tiling and its source -> an array that holds it, or a region of it: new, or the caller's.

The last checks are made here, of `out` or of the size; then memory, then bytes. While memory is sought, and
while the number of threads is asked for, other code may run, and give the input another shape or take its
memory away: so where its bytes lie is noted first, and checked last (see arguments.pyx).
"""

import math

import numpy

cimport numpy as cnp

from tilecore._core.request.arguments cimport check_out, check_size
from tilecore._core.write.execute cimport TILECORE_NOGIL_BYTES, Mode, raise_pending
from tilecore._core.request.integers cimport as_tuple, read_integers, read_signed
from tilecore._core.resources.memory cimport new_array
from tilecore._core.numpy_api cimport PyDataType_REFCHK
from tilecore._core.plan.sizes cimport (
    MAX_RANK, PY_SSIZE_T_MAX, Held, Place, Plan, held_note, place_note, plan_check, plan_init,
)
from tilecore._core.write.references cimport Leaves, leaves_of, write_references
from tilecore._core.plan.plan cimport Bounds, Tiling, choose_mode, tiling_execute, tiling_execute_region
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


cdef inline void job_note(Job *job, const Plan *plan, cnp.ndarray array, cnp.ndarray out, Py_ssize_t nbytes) noexcept:
    held_note(&job.source, array, plan.input_nbytes)
    job.is_new = out is None
    if not job.is_new:
        held_note(&job.target, out, nbytes)


cdef cnp.ndarray place_for(Job *job, int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, cnp.dtype dtype,
                           const Plan *plan, const Place *source, cnp.ndarray out):
    """The array that is to hold the result, `out` or a new one."""
    if job.is_new:
        out = new_result(ndim, shape, nbytes, &job.warm, dtype)
        place_note(&job.place, out)
        held_note(&job.target, out, nbytes)
        return out
    job.warm = True
    if check_out(out, shape, ndim, plan.itemsize, source, &plan.shape[plan.ndim - plan.input_ndim], &job.place):
        check_held(&job.source, &job.target)
    return out


# ---------------------------------------------------------------- the whole

cdef cnp.ndarray whole(const Tiling *tiling, cnp.ndarray array, cnp.ndarray out, int threads):
    """The whole tiling of `array`, in `out`, which read_out has read, or in a new array where that is None."""
    cdef Place source
    place_note(&source, array)
    return whole_at(tiling, &source, array, out, threads)


cdef cnp.ndarray whole_at(const Tiling *tiling, const Place *source, cnp.ndarray array, cnp.ndarray out, int threads):
    """Of the items at `source`, in the memory of `array`."""
    cdef const Plan *plan = &tiling.plan
    cdef cnp.dtype dtype = array.descr, of_result = dtype if out is None else out.descr
    cdef bint counted = PyDataType_REFCHK(dtype)
    cdef Leaves leaves
    cdef cnp.ndarray result
    cdef Job job
    cdef Mode mode
    cdef int status
    job_note(&job, plan, array, out, plan.nbytes)
    leaves = leaves_of(dtype) if counted else None
    result = place_for(&job, plan.ndim, plan.output, plan.nbytes, of_result, plan, source, out)
    if plan.nbytes == 0:
        pass
    elif counted:
        write_items(tiling, &job, source, NULL, plan.output, leaves, threads)
    elif plan.nbytes < TILECORE_NOGIL_BYTES:
        tiling_execute(tiling, source, &job.place, Mode(1, False, False))
    else:
        mode = choose_mode(tiling, plan.nbytes, threads, job.warm)
        check_held(&job.source, &job.target)
        with nogil:
            status = tiling_execute(tiling, source, &job.place, mode)
        if status < 0:
            raise_pending()
    return result


cdef int write_items(const Tiling *tiling, const Job *job, const Place *source, const Py_ssize_t *start,
                     const Py_ssize_t *shape, Leaves leaves, int threads) except -1:
    """Items that hold references."""
    cdef Py_ssize_t nbytes = job.target.nbytes
    try:
        write_references(&tiling.plan, source, &job.place, &job.source, &job.target, start, shape, leaves, job.is_new,
                         choose_mode(tiling, nbytes, threads, False))
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


cdef int check_lengths(const Tiling *tiling, const Bounds *bounds) except -1:
    """That there is a start and a stop for each axis."""
    cdef const Plan *plan = &tiling.plan
    if bounds.starts == plan.ndim and bounds.stops == plan.ndim:
        return 0
    what, n = ("stop", bounds.stops) if bounds.starts == plan.ndim else ("start", bounds.starts)
    axes = "the input" if tiling.endless else f"the result's shape {as_tuple(plan.output, plan.ndim)}"
    raise Refusal(ValueError, f"must have {plan.ndim} entries, one for each axis of {axes}, got {n}", what)


cdef int check_bounds(const Tiling *tiling, const Bounds *bounds, Py_ssize_t *shape) except -1:
    """The shape of a region that lies in the tiling."""
    cdef const Plan *plan = &tiling.plan
    cdef const Py_ssize_t *first = &bounds.start[0]
    cdef const Py_ssize_t *last = &bounds.stop[0]
    cdef int k
    for k in range(plan.ndim):
        if not first[k] <= last[k] <= plan.output[k]:
            raise Refusal(ValueError, f"expected 0 <= start <= stop <= {plan.output[k]} on axis {k}, got "
                          f"start {first[k]}, stop {last[k]}")
        shape[k] = last[k] - first[k]
    return 0


cdef int check_bounds_in_plane(const Tiling *tiling, const Bounds *bounds, Py_ssize_t *shape) except -1:
    """The shape of a region anywhere in the plane, of which the bytes can be counted."""
    cdef const Plan *plan = &tiling.plan
    cdef const Py_ssize_t *first = &bounds.start[0]
    cdef const Py_ssize_t *last = &bounds.stop[0]
    cdef Plan whole
    cdef int k, status
    for k in range(plan.ndim):
        if first[k] > last[k]:
            raise Refusal(ValueError, f"expected start <= stop on axis {k}, got start {first[k]}, stop {last[k]}")
        if first[k] < 0 and last[k] > PY_SSIZE_T_MAX + first[k]:
            raise Refusal(ValueError, f"axis {k} overflows: from {first[k]} to {last[k]} are more than "
                          f"{PY_SSIZE_T_MAX} elements")
        shape[k] = last[k] - first[k]
        if shape[k] and not plan.shape[k]:
            raise Refusal(ValueError, f"axis {k} of the input is empty and tiles no plane, but the region has "
                          f"{shape[k]} elements along it")
    status = plan_init(&whole, plan.ndim, shape, 0, NULL, plan.itemsize)
    return plan_check(&whole, status)


cdef cnp.ndarray region(const Tiling *tiling, cnp.ndarray array, const Bounds *bounds, cnp.ndarray out, int threads):
    """The region [start, stop) of the tiling of `array`; `out` as in `whole`."""
    cdef const Plan *plan = &tiling.plan
    cdef const Py_ssize_t *first = &bounds.start[0]
    cdef const Py_ssize_t *last = &bounds.stop[0]
    cdef Py_ssize_t shape[MAX_RANK + 1]
    cdef Py_ssize_t nbytes = plan.itemsize
    cdef cnp.dtype dtype = array.descr, of_result = dtype if out is None else out.descr
    cdef bint counted = PyDataType_REFCHK(dtype)
    cdef Leaves leaves
    cdef cnp.ndarray result
    cdef Place source
    cdef Job job
    cdef Mode mode
    cdef int k, status
    place_note(&source, array)
    check_lengths(tiling, bounds)
    if tiling.endless:
        check_bounds_in_plane(tiling, bounds, shape)
    else:
        check_bounds(tiling, bounds, shape)
    for k in range(plan.ndim):
        nbytes *= shape[k]
    job_note(&job, plan, array, out, nbytes)
    leaves = leaves_of(dtype) if counted else None
    result = place_for(&job, plan.ndim, shape, nbytes, of_result, plan, &source, out)
    if nbytes == 0:
        pass
    elif counted:
        write_items(tiling, &job, &source, first, shape, leaves, threads)
    elif nbytes < TILECORE_NOGIL_BYTES:
        tiling_execute_region(tiling, &source, &job.place, first, last, nbytes, Mode(1, False, False))
    else:
        mode = choose_mode(tiling, nbytes, threads, job.warm)
        check_held(&job.source, &job.target)
        with nogil:
            status = tiling_execute_region(tiling, &source, &job.place, first, last, nbytes, mode)
        if status < 0:
            raise_pending()
    return result
