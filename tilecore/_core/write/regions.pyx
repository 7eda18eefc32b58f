"""A region of a tiling: the part [start, stop) of it, or of the endless plane that the input tiles.

Along one axis a region is up to three pieces: the end of a first repeat, whole repeats, the start of a
last one. Input of extent 5, region [3, 17):

    tiling   0 1 2 3 4 0 1 2 3 4 0 1 2 3 4 0 1 2 ...
    region         3 4|0 1 2 3 4 0 1 2 3 4|0 1           pieces of 2, of 2 x 5, and of 2 elements

The pieces of all axes, combined, are nests of loops, and each is executed as a whole tiling is. There are fewer if
start or stop is a multiple of the extent. Only the index of start within its repeat matters, not which repeat it is.

Many short axes make many small pieces: 2 elements on each of 28 axes can be 2^28 pieces of one item. Such regions are
written item by item.

Nothing here can fail, as in tiling.pyx.
"""

from libc.string cimport memcpy

from tilecore._core.plan.nest cimport (
    Axis, AxisIter, Nest, RegionIter, nest_begin, nest_push_piece, next_item, region_iter_init,
)
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.array_refs cimport ArrayRef, ref_strides
from tilecore._core.write.signals cimport check_signals
from tilecore._core.write.tiling cimport Mode, write_nest


cdef enum:
    LEAST_PIECE = 32    # bytes; smaller pieces are slower than single items: preparing a piece takes about 0.2 us


cdef struct Region:
    RegionIter iter
    Py_ssize_t itemsize
    Mode *mode


cdef int write_region(const Sizes *sizes, const ArrayRef *source, const ArrayRef *target, const Py_ssize_t *start,
                      const Py_ssize_t *shape, Py_ssize_t nbytes, Mode *mode) noexcept nogil:
    """Write the region of `shape` at `start`, `nbytes` in all; return 0, or -1 if a signal handler raised.

    `target` has the region's shape. Unless `nbytes` is 0, no axis is empty.
    """
    cdef Region region
    cdef Nest nest
    cdef const char *src
    cdef char *dst
    cdef int k
    cdef Py_ssize_t pieces = 1
    if nbytes == 0:
        return 0
    region.itemsize = sizes.itemsize
    region.mode = mode
    region_iter_init(&region.iter, sizes, ref_strides(source), ref_strides(target), start, shape)
    src, dst = source.data + region.iter.src, target.data + region.iter.dst
    for k in range(region.iter.n):
        if pieces <= nbytes:
            pieces *= pieces_along(&region.iter.axis[k])
    if nbytes // pieces < LEAST_PIECE:
        return write_items(&region, dst, src)
    nest_begin(&nest, sizes.itemsize)
    return write_pieces(&region, 0, &nest, dst, src, sizes.itemsize)


cdef Py_ssize_t pieces_along(const AxisIter *axis) noexcept nogil:
    cdef Py_ssize_t head = axis.extent - axis.first if axis.first else 0
    if axis.count <= head:
        return 1
    return (head > 0) + (axis.count - head >= axis.extent) + ((axis.count - head) % axis.extent > 0)


cdef int write_pieces(Region *region, int k, Nest *nest, char *dst, const char *src, Py_ssize_t nbytes) noexcept nogil:
    """Add the loops of axis `k` and of all outer axes to `nest`, and write each piece; return as write_region."""
    cdef const AxisIter *axis = &region.iter.axis[k]
    cdef Py_ssize_t done = 0, length
    cdef int n = nest.n
    cdef Axis top = nest.axis[n - 1]
    if k == region.iter.n:
        if write_nest(nest, dst, src, nbytes, region.mode) < 0:
            return -1
        return check_signals(&region.mode.signals, 256 * region.itemsize)  # preparing a piece takes time too
    src += axis.first * axis.src
    while done < axis.count:
        length = nest_push_piece(nest, axis, done)
        if write_pieces(region, k + 1, nest, dst + done * axis.dst, src, nbytes * length) < 0:
            return -1
        if done == 0:
            src -= axis.first * axis.src
        done += length
        nest.n = n  # restored for the next piece
        nest.axis[n - 1] = top
    return 0


cdef int write_items(Region *region, char *dst, const char *src) noexcept nogil:
    """Write a region item by item; return as write_region."""
    cdef AxisIter *axis = region.iter.axis
    cdef int k
    for k in range(region.iter.n):
        src += axis[k].first * axis[k].src
    while True:
        memcpy(dst, src, region.itemsize)
        if check_signals(&region.mode.signals, max(region.itemsize, 16)) < 0:
            return -1
        if not next_item(axis, region.iter.n, 1, &dst, &src):
            return 0
