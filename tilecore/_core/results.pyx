# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A plan and a source -> an array that holds the tiling, or a region of it: new, or the caller's.

The last checks are made here, of `out` or of the size; then memory, then bytes. In between a signal's
handler or another thread may run, and give the input another shape: so where its bytes lie was noted,
as a Source, when the plan was made.
"""

import math

import numpy

from tilecore._core.threads import get_num_threads

cimport numpy as cnp

from tilecore._core.arguments cimport as_tuple, check_out, check_size, read_integers, refuse
from tilecore._core.execute cimport (
    TILECORE_DEFAULT_THREAD_BYTES, TILECORE_INTERRUPT_BYTES, TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, Mode,
    execute, execute_region, raise_pending,
)
from tilecore._core.memory cimport new_array
from tilecore._core.numpy_api cimport PyDataType_REFCHK
from tilecore._core.plan cimport MAX_RANK, PY_SSIZE_T_MAX, Nest, Plan, plan_nest
from tilecore._core.references cimport write_references, write_references_region

cnp.import_array()


cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint warm) except *:
    """How to write `nbytes`; `threads` as asked for, or 0. `warm`: where bytes have been before."""
    cdef Mode mode = Mode(threads, TILECORE_THREAD_BYTES, warm, nbytes >= TILECORE_INTERRUPT_BYTES)
    if threads <= 0:
        mode.thread_bytes = TILECORE_DEFAULT_THREAD_BYTES
        mode.threads = get_num_threads() if nbytes >= TILECORE_DEFAULT_THREAD_BYTES else 1
    return mode


cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm,
                            cnp.ndarray array, str name, reps):
    """Where a result goes for which there is no `out`."""
    if nbytes == 0 and array.descr.itemsize == 0 and array.descr.kind in b"SU":
        return blank_strings(as_tuple(shape, ndim), array, name, reps)
    check_size(nbytes, name, array, reps)
    result = new_array(ndim, <Py_ssize_t *>shape, array.descr, nbytes, warm)
    if result is None:
        raise no_memory(nbytes, array, name, reps)
    return result


cdef cnp.ndarray blank_strings(tuple shape, cnp.ndarray array, str name, reps):
    """A new array of strings of no characters: NumPy gives each of them room for one."""
    nbytes = math.prod(shape) * numpy.dtype((array.dtype.type, 1)).itemsize
    check_size(min(nbytes, PY_SSIZE_T_MAX), name, array, reps)
    try:
        return numpy.zeros(shape, array.dtype)
    except (MemoryError, ValueError):
        raise no_memory(nbytes, array, name, reps) from None


cdef no_memory(nbytes, cnp.ndarray array, str name, reps):
    return refuse(MemoryError, name, f"no memory for a result of {nbytes} bytes", array, reps)


# ---------------------------------------------------------------- the whole

cdef whole(const Plan *plan, const Source *source, cnp.ndarray array, out, int threads, str name, reps):
    """The whole tiling of `array`, in `out` or a new array."""
    cdef bint references = PyDataType_REFCHK(array.descr)
    cdef cnp.ndarray result
    cdef bint warm = True
    if out is None:
        result = new_result(plan.ndim, plan.output, plan.nbytes, &warm, array, name, reps)
    else:
        result = check_out(out, plan.output, plan.ndim, array, name, reps)
    if plan.nbytes == 0:
        pass
    elif references:
        write_whole_references(plan, array, result, out is None, name, reps)
    else:
        write_whole(plan, source, result, threads, warm)
    return result if out is None else out


cdef int write_whole(const Plan *plan, const Source *source, cnp.ndarray result, int threads, bint warm) except -1:
    cdef char *dst = cnp.PyArray_BYTES(result)
    cdef Nest nest
    cdef Mode mode
    cdef int status
    plan_nest(plan, source.ndim, strides_of(source), &nest)
    if plan.nbytes < TILECORE_NOGIL_BYTES:
        execute(&nest, dst, source.data, plan.nbytes, Mode(1, 0, False, False))
        return 0
    mode = choose_mode(plan.nbytes, threads, warm)
    with nogil:
        status = execute(&nest, dst, source.data, plan.nbytes, mode)
    return raise_pending() if status < 0 else 0


cdef int write_whole_references(const Plan *plan, cnp.ndarray array, cnp.ndarray result, bint is_new,
                                str name, reps) except -1:
    cdef bint warm
    cdef cnp.ndarray fresh = result
    if not is_new:
        # What `out` refers to may run code when it is let go, so that happens last, in NumPy.
        fresh = new_array(plan.ndim, <Py_ssize_t *>plan.output, array.descr, plan.nbytes, &warm)
        if fresh is None:
            raise no_memory(plan.nbytes, array, name, reps)
    try:
        write_references(plan, array, fresh)
        if not is_new:
            numpy.copyto(result, fresh)
    except MemoryError:  # NumPy's: a string, a temporary
        raise no_memory(plan.nbytes, array, name, reps) from None
    return 0


# ---------------------------------------------------------------- a region

cdef int read_bounds(Bounds *bounds, start, stop, str name, array, reps) except -1:
    """Before the plan and every look at the array: reading may run code that changes the array."""
    bounds.starts = read_integers(start, bounds.start, "start", name, array, reps)
    bounds.stops = read_integers(stop, bounds.stop, "stop", name, array, reps)
    return 0


cdef part(const Plan *plan, const Source *source, cnp.ndarray array, const Bounds *bounds, out, int threads,
          str name, reps):
    """The region [start, stop) of the tiling of `array`, in `out` or a new array."""
    cdef const Py_ssize_t *first = bounds.start
    cdef const Py_ssize_t *last = bounds.stop
    cdef Py_ssize_t shape[MAX_RANK + 1]
    cdef Py_ssize_t nbytes = plan.itemsize
    cdef bint references = PyDataType_REFCHK(array.descr)
    cdef cnp.ndarray result
    cdef bint warm = True
    cdef int k
    for what, n in (("start", bounds.starts), ("stop", bounds.stops)):
        if n != plan.ndim:
            raise refuse(ValueError, name, f"{what} must have {plan.ndim} entries, one for each axis of the "
                         f"result's shape {as_tuple(plan.output, plan.ndim)}, got {n}", array, reps)
    for k in range(plan.ndim):
        if not first[k] <= last[k] <= plan.output[k]:
            raise refuse(ValueError, name, f"expected 0 <= start <= stop <= {plan.output[k]} on axis {k}, got "
                         f"start {first[k]}, stop {last[k]}", array, reps)
        shape[k] = last[k] - first[k]
        nbytes *= shape[k]  # no more than the whole result's
    if out is None:
        result = new_result(plan.ndim, shape, nbytes, &warm, array, name, reps)
    else:
        result = check_out(out, shape, plan.ndim, array, name, reps)
    if nbytes == 0:
        pass
    elif references:
        try:
            write_references_region(plan, array, result, first, last)
        except MemoryError:
            raise no_memory(nbytes, array, name, reps) from None
    else:
        write_part(plan, source, result, first, last, choose_mode(nbytes, threads, warm))
    return result if out is None else out


cdef int write_part(const Plan *plan, const Source *source, cnp.ndarray result, const Py_ssize_t *start,
                    const Py_ssize_t *stop, Mode mode) except -1:
    cdef char *dst = cnp.PyArray_BYTES(result)
    cdef int status
    with nogil:
        status = execute_region(plan, source.ndim, strides_of(source), dst, source.data, start, stop, mode)
    return raise_pending() if status < 0 else 0
