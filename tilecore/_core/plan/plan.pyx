# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What can be executed: a tiling, made once from shape, repeats and itemsize, and executed any number of
times, whole or a region of it, from any place of such a shape to any other.

    tile            makes one on its stack, and executes it once
    TilePlan        keeps one, its block prepared
    the C API       keeps one, its block prepared: tilecore_plan; or makes one on its stack: tilecore_tile

Here alone it is decided how many threads write, whether a call looks for signals, and whether stores may
go round the cache. From here on nothing can fail: every offset has been shown to fit.
"""

import os
import threading

from tilecore._core.resources.threads import get_num_threads

cimport numpy as cnp
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tilecore._core.write.execute cimport (
    TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, TILECORE_WATCH_BYTES, Blocks, Mode, default_threads, divide, execute,
    execute_small, write_one_block,
)
from tilecore._core.plan.sizes cimport PLAN_OK, Nest, Place, Plan, plan_check, plan_init, plan_nest, place_strides
from tilecore._core.write.regions cimport execute_region

cnp.import_array()


cdef enum:
    SMALL_BYTES = 1024
    SMALL_COPIES = 16


cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil


cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030D0000
    #define Py_IsFinalizing _Py_IsFinalizing
    #endif
    """
    int Py_IsFinalizing()


cdef int tiling_init(Tiling *tiling, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                     Py_ssize_t itemsize) noexcept nogil:
    """A PlanStatus."""
    tiling.endless = False
    tiling.memory = NULL
    tiling.block = NULL
    return plan_init(&tiling.plan, ndim, shape, nreps, repeats, itemsize)


cdef int tiling_of(Tiling *tiling, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) except -1:
    """For the shape that `array` has now."""
    cdef int status = tiling_init(tiling, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), nreps,
                                  repeats, cnp.PyArray_ITEMSIZE(array))
    if status != PLAN_OK:
        plan_check(&tiling.plan, status)
    return 0


cdef bint tiling_prepare(Tiling *tiling) noexcept nogil:
    """Get the block ready where the result is a single one; False where there is no memory for that."""
    cdef Nest nest
    cdef Py_ssize_t row
    small_rows(&tiling.plan, &row)
    if row or not 0 < tiling.plan.nbytes < TILECORE_NOGIL_BYTES:
        return True
    # The kernels' masks want an alignment that Python's objects do not have. Not PyMem_RawMalloc, for which
    # tracemalloc takes the GIL: a plan of C's is made without it.
    tiling.memory = malloc(sizeof(Blocks) + 64)
    if tiling.memory == NULL:
        return False
    tiling.block = <Blocks *>((<size_t>tiling.memory + 63) & ~<size_t>63)
    plan_nest(&tiling.plan, NULL, NULL, &nest)
    divide(tiling.block, &nest, False, True)
    if tiling.block.loops:
        tiling.block = NULL
    return True


cdef void tiling_clear(Tiling *tiling) noexcept nogil:
    free(tiling.memory)


# ---------------------------------------------------------------- how

cdef Mode choose_mode(const Tiling *tiling, Py_ssize_t nbytes, int threads, bint warm) except *:
    """How to write `nbytes`; `threads` as asked for, or 0. `warm`: where bytes have been before."""
    cdef Mode mode = Mode(threads, warm, False)
    if threads <= 0 and nbytes >= TILECORE_THREAD_BYTES:
        # At exit a module's globals may be None already, and then one thread does.
        mode.threads = 1 if Py_IsFinalizing() else get_num_threads()
    if nbytes >= TILECORE_WATCH_BYTES:
        mode.poll = PyThread_get_thread_ident() == main_thread
    return mode


cdef Mode caller_mode(int threads) noexcept nogil:
    """How to write for a caller from C: his memory is taken for warm, and signals are his business."""
    return Mode(threads if threads > 0 else default_threads(), True, False)


# ---------------------------------------------------------------- execution

cdef inline int small_rows(const Plan *plan, Py_ssize_t *row) noexcept nogil:
    """The innermost axis that is repeated, or -1, and the bytes within; no bytes for a result that is not small."""
    cdef int k = plan.ndim - 1
    row[0] = plan.itemsize
    while k >= 0 and plan.repeats[k] == 1:
        row[0] *= plan.shape[k]
        k -= 1
    if k >= 0:
        row[0] *= plan.shape[k]
    if plan.nbytes > SMALL_BYTES or (k >= 0 and plan.nbytes > SMALL_COPIES * row[0]):
        row[0] = 0
    return k


cdef bint write_small(const Plan *plan, char *dst, const char *src) noexcept nogil:
    """Write a result of few rows, C-contiguous from C-contiguous; False, with nothing written, for others.

    Nine results in ten are this small, and half of all repeat nothing: then loops and kernels take longer
    to choose than to run. Rows first, each as often as the innermost repeat says, packed at the start;
    then, axis by axis outward, each group is moved to its place, the last first, and copied behind itself.
    """
    cdef Py_ssize_t row, group, packed, repeats, r
    cdef int k = small_rows(plan, &row)
    cdef const char *end = src + plan.input_nbytes
    cdef const char *group_at
    cdef char *at = dst
    if row == 0:
        return False
    if k < 0:
        memcpy(dst, src, row)
        return True
    repeats = plan.repeats[k]
    while src < end:
        for r in range(repeats):  # no-cython-lint: a typed loop needs its variable
            memcpy(at, src, row)
            at += row
        src += row
    group = row * repeats
    packed = at - dst
    for k in range(k - 1, -1, -1):
        group *= plan.shape[k]
        repeats = plan.repeats[k]
        if repeats == 1:
            continue
        group_at = dst + packed
        packed *= repeats
        at = dst + packed
        while group_at > dst:
            group_at -= group
            at -= group * repeats
            if group_at > dst:
                memcpy(at, group_at, group)
            for r in range(1, repeats):
                memcpy(at + r * group, at, group)
        group *= repeats
    return True


cdef int tiling_execute(const Tiling *tiling, const Place *source, const Place *target, Mode mode) noexcept nogil:
    """Write all of it; 0, or -1 where a signal handler has raised."""
    cdef Nest nest
    if tiling.plan.nbytes == 0:
        return 0
    if source.contiguous and target.contiguous:
        if write_small(&tiling.plan, target.data, source.data):
            return 0
        if tiling.block != NULL:
            write_one_block(tiling.block, target.data, source.data)
            return 0
    plan_nest(&tiling.plan, place_strides(source), place_strides(target), &nest)
    if tiling.plan.nbytes < TILECORE_NOGIL_BYTES:
        execute_small(&nest, target.data, source.data)
        return 0
    return execute(&nest, target.data, source.data, tiling.plan.nbytes, mode)


cdef int tiling_execute_region(const Tiling *tiling, const Place *source, const Place *target,
                               const Py_ssize_t *start, const Py_ssize_t *stop, Py_ssize_t nbytes,
                               Mode mode) noexcept nogil:
    """Write [start, stop), `nbytes` in all; as tiling_execute."""
    if nbytes == 0:
        return 0
    return execute_region(&tiling.plan, place_strides(source), place_strides(target), target.data, source.data,
                          start, stop, nbytes, mode)


# ---------------------------------------------------------------- set-up

# Python delivers signals to it alone. Not asked for at each call, for that would run Python.
cdef unsigned long main_thread = threading.main_thread().ident


def note_main_thread():
    """In a forked child the thread that has forked is the main one."""
    global main_thread
    main_thread = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=note_main_thread)
