"""A region of a tiling: the part [start, stop) of it, or of the endless plane that the input tiles.

Along one axis a region is up to three pieces: the end of a first repeat, whole repeats, the start of a
last one. Input of extent 5, region [3, 17):

    tiling   0 1 2 3 4 0 1 2 3 4 0 1 2 3 4 0 1 2 ...
    region         3 4|0 1 2 3 4 0 1 2 3 4|0 1           pieces of 2, of 2 x 5, and of 2 elements

The pieces of all axes, combined, are nests of loops, and each is executed as a whole tiling is, which is the one piece
of its region. There are fewer pieces if start or stop is a multiple of the extent. Only the index of start within its
repeat matters, not which repeat it is: nest.pyx computes it, and where the source wraps around.

Many short axes make many small pieces: 2 elements on each of 28 axes can be 2^28 pieces of one item. Such regions are
written item by item.

Nothing here can fail, as in tiling.pyx.
"""

from libc.string cimport memcpy

from tilecore._core.plan.nest cimport AxisIter, Nest, RegionIter, next_item, next_piece, region_iter_init
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.strided_arrays cimport StridedArray, ref_strides
from tilecore._core.write.signals cimport check_signals
from tilecore._core.write.tiling cimport WriteOptions, write_nest


cdef enum:
    MIN_PIECE = 32    # bytes; smaller pieces are slower than single items: each piece is prepared


cdef int write_region(const Sizes *sizes, const StridedArray *source, const StridedArray *target,
                      const Py_ssize_t *start, const Py_ssize_t *shape, Py_ssize_t nbytes,
                      WriteOptions *options) noexcept nogil:
    """Write the region of `shape` at `start`, `nbytes` in all; return 0, or -1 if a signal handler raised.

    `target` has the region's shape. Unless `nbytes` is 0, no axis is empty.
    """
    cdef RegionIter iter
    cdef Nest nest
    cdef const AxisIter *axis
    cdef Py_ssize_t pieces = 1, left
    cdef int k
    if nbytes == 0:
        return 0
    region_iter_init(&iter, sizes, ref_strides(source), ref_strides(target), start, shape)
    for k in range(iter.n):
        axis = &iter.axis[k]
        left = axis.count - (axis.extent - axis.first if axis.first else 0)
        if pieces <= nbytes:
            pieces *= (axis.first > 0) + (left >= axis.extent) + (left % axis.extent > 0)
    if nbytes // pieces < MIN_PIECE:
        return write_items(&iter, target.data + iter.dst, source.data + iter.src, options)
    while True:
        nbytes = next_piece(&iter, &nest)
        if nbytes == 0:
            return 0
        if write_nest(&nest, target.data, source.data, nbytes, options) < 0:
            return -1
        if check_signals(&options.signals, 256 * sizes.itemsize) < 0:  # it was prepared, too
            return -1


cdef int write_items(RegionIter *iter, char *dst, const char *src, WriteOptions *options) noexcept nogil:
    """Write a region item by item; return as write_region."""
    cdef int k
    for k in range(iter.n):
        src += iter.axis[k].first * iter.axis[k].src
    while True:
        memcpy(dst, src, iter.itemsize)
        if check_signals(&options.signals, max(iter.itemsize, 16)) < 0:
            return -1
        if not next_item(iter.axis, iter.n, 1, &dst, &src):
            return 0
