from tilecore._core.plan.plan cimport Plan
from tilecore._core.strided_arrays cimport StridedArray


cdef enum:
    # One row, and at most 62 loops of at least two steps each: an output has less than 2^63 bytes.
    MAX_LOOPS = 64


cdef struct Loop:
    Py_ssize_t count        # steps, at least 1
    Py_ssize_t src_step     # bytes forward in the source: 0 for a repeat
    Py_ssize_t dst_step     # bytes forward in the output


cdef struct AxisIter:               # one axis of a region, and a position on it
    Py_ssize_t count                # items in the output, at least 2, or 1 in a band
    Py_ssize_t extent               # items in the source, after which it wraps around; `count` if it does not
    Py_ssize_t first                # source index of the region's first item
    Py_ssize_t src_step, dst_step   # bytes to the next item
    Py_ssize_t src_index            # the position in the source
    Py_ssize_t dst_index            # and in the output, from 0 to count - 1


cdef struct RegionIter:             # a region of a tiling, or all of it
    int n                           # axes in use
    bint finished                   # next_piece gave the last piece
    Py_ssize_t itemsize
    Py_ssize_t src_offset, dst_offset   # of index 0 on every axis
    AxisIter axis[MAX_LOOPS]        # innermost first


cdef struct Nest:
    int n                           # loops in use; loop[0] is a row, with steps of one byte
    Py_ssize_t src_offset, dst_offset   # of the first row
    Loop loop[MAX_LOOPS]            # innermost first


cdef inline void nest_begin(Nest *nest, Py_ssize_t itemsize) noexcept nogil:
    nest.n = 1
    nest.src_offset = nest.dst_offset = 0
    nest.loop[0] = Loop(itemsize, 1, 1)


cdef inline bint continues(Py_ssize_t step, Py_ssize_t count, Py_ssize_t inner_step) noexcept nogil:
    """Whether one step of a loop equals `count` steps of the loop inside it. If so in source and output, they merge."""
    return step == inner_step * count


cdef inline void nest_push(Nest *nest, Py_ssize_t count, Py_ssize_t src_step, Py_ssize_t dst_step) noexcept nogil:
    """Add a loop around the nest, or merge it with the outermost loop if it only continues that loop."""
    cdef Loop *top = &nest.loop[nest.n - 1]
    if count == 1:
        return
    if continues(dst_step, top.count, top.dst_step) and continues(src_step, top.count, top.src_step):
        top.count *= count
    else:
        nest.loop[nest.n] = Loop(count, src_step, dst_step)
        nest.n += 1


cdef inline int first_moving(const Nest *nest) noexcept nogil:
    """Return the index of the innermost loop that moves in the source; the number of loops if none does."""
    cdef int k = 1
    while k < nest.n and nest.loop[k].src_step == 0:
        k += 1
    return k


cdef inline bint next_step(const Loop *loop, Py_ssize_t *at, int n, char **dst, const char **src) noexcept nogil:
    """Advance by one step of the innermost loop that is not at its end; return False if all `n` are.

    `at` has the position in each loop, from 0 to count - 1.
    """
    cdef int k
    for k in range(n):
        at[k] += 1
        dst[0] += loop[k].dst_step
        src[0] += loop[k].src_step
        if at[k] < loop[k].count:
            return True
        at[k] = 0
        dst[0] -= loop[k].count * loop[k].dst_step
        src[0] -= loop[k].count * loop[k].src_step
    return False


cdef void region_iter_init(RegionIter *iter, const Plan *plan, const StridedArray *source,
                           const StridedArray *target) noexcept nogil
cdef Py_ssize_t next_piece(RegionIter *iter, Nest *nest) noexcept nogil
cdef void nest_init(const Plan *plan, const StridedArray *source, const StridedArray *target, Nest *nest) noexcept nogil
