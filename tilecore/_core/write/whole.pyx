"""A plan and the places of source and result -> bytes of the whole result; of a region, see regions.pyx.

Here it is decided how many threads may write (workers.h takes fewer for few bytes), whether a call looks for
signals, and whether stores may bypass the cache. Nothing can fail: every offset has been shown to fit.
"""

import sys

from tilecore._core.resources.threads import get_num_threads

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tilecore._core.plan.nest cimport Nest, nest_init
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.places cimport place_strides
from tilecore._core.resources.host cimport in_main_thread
from tilecore._core.write.execute cimport (
    TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, Blocks, choose_blocks, execute, stays_alone, write_one_block,
)
from tilecore._core.write.signals cimport TILECORE_WATCH_BYTES


cdef enum:
    SMALL_BYTES = 1024
    SMALL_COPIES = 16


cdef object is_finalizing = sys.is_finalizing  # the name `sys` is gone at exit


cdef bint plan_prepare(Plan *plan) noexcept nogil:
    """Prepare the block if the result is a single one; False if there is no memory for that."""
    cdef Nest nest
    cdef Blocks *blocks
    cdef Py_ssize_t row
    if not 0 < plan.sizes.nbytes < TILECORE_NOGIL_BYTES:  # the extents of an empty result may have no product
        return True
    choose_small_row(&plan.sizes, &row)
    if row:
        return True
    # The kernels' masks need an alignment that Python's objects lack. Not by PyMem_RawMalloc: tracemalloc takes the
    # GIL for it, and a plan of C's is made without.
    plan.memory = malloc(sizeof(Blocks) + 64)
    if plan.memory == NULL:
        return False
    blocks = <Blocks *>((<size_t>plan.memory + 63) & ~<size_t>63)
    nest_init(&plan.sizes, NULL, NULL, &nest)
    choose_blocks(blocks, &nest, False, True)
    if blocks.loops == 0:
        plan.block = blocks
    return True


cdef void plan_clear(Plan *plan) noexcept nogil:
    free(plan.memory)


# ---------------------------------------------------------------- modes

cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint warm) except *:
    """How to write `nbytes`; `threads` as asked for, or 0. It may run the caller's code."""
    cdef Mode mode = Mode(threads, warm, False)
    if threads <= 0 and nbytes >= (TILECORE_THREAD_BYTES if warm else 2 * TILECORE_THREAD_BYTES):
        # At exit a module's globals may be None already; one thread will do.
        mode.threads = 1 if is_finalizing() else get_num_threads()
        if mode.threads > 1 and stays_alone():
            mode.threads = 1
    if nbytes >= TILECORE_WATCH_BYTES:
        mode.poll = in_main_thread()
    return mode


# ---------------------------------------------------------------- execution

cdef inline int choose_small_row(const Sizes *sizes, Py_ssize_t *row) noexcept nogil:
    """The innermost axis that is repeated, or -1; `row`: bytes within it, 0 for a result that is not small."""
    cdef int k = sizes.ndim - 1
    row[0] = sizes.itemsize
    while k >= 0 and sizes.repeats[k] == 1:
        row[0] *= sizes.shape[k]
        k -= 1
    if k >= 0:
        row[0] *= sizes.shape[k]
    if sizes.nbytes > SMALL_BYTES or (k >= 0 and sizes.nbytes > SMALL_COPIES * row[0]):
        row[0] = 0
    return k


cdef bint write_small(const Sizes *sizes, char *dst, const char *src) noexcept nogil:
    """Write a result of few rows, C-contiguous from C-contiguous; False, with nothing written, for others.

    Nine results in ten are this small, and half of all repeat nothing: loops and kernels take longer to choose than to
    run. First each row is written, with its repeats, packed at the start. Then, axis by axis outward, each group is
    moved to its place, the last one first, and copied after itself.
    """
    cdef Py_ssize_t row, group, packed, repeats, r
    cdef int k = choose_small_row(sizes, &row)
    cdef const char *end = src + sizes.input_nbytes
    cdef const char *group_at
    cdef char *at = dst
    if row == 0:
        return False
    if k < 0:
        memcpy(dst, src, row)
        return True
    repeats = sizes.repeats[k]
    while src < end:
        for r in range(repeats):  # no-cython-lint: a typed loop needs its variable
            memcpy(at, src, row)
            at += row
        src += row
    group = row * repeats
    packed = at - dst
    for k in range(k - 1, -1, -1):
        group *= sizes.shape[k]
        repeats = sizes.repeats[k]
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


cdef int execute_plan(const Plan *plan, const Place *source, const Place *target, Mode mode) noexcept nogil:
    """Write all of it; 0, or -1 if a signal handler has raised."""
    cdef Nest nest
    if source.contiguous and target.contiguous:
        if write_small(&plan.sizes, target.data, source.data):
            return 0
        if plan.block != NULL:
            write_one_block(<const Blocks *>plan.block, target.data, source.data)
            return 0
    nest_init(&plan.sizes, place_strides(source), place_strides(target), &nest)
    return execute(&nest, target.data, source.data, plan.sizes.nbytes, mode)
