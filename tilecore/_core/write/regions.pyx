"""A region of a tiling: the part [start, stop) of it, or of the endless plane that the input tiles.

Along one axis a region is up to three pieces: the end of a first repeat, whole repeats, the start of a
last one. Input of extent 5, region [3, 17):

    tiling   0 1 2 3 4 0 1 2 3 4 0 1 2 3 4 0 1 2 ...
    region         3 4|0 1 2 3 4 0 1 2 3 4|0 1           pieces of 2, of 2 x 5, and of 2 elements

The pieces of all axes, combined, are nests of loops, and each is executed as a whole tiling is, which is the one piece
of its region. A piece takes 0.1 us to prepare. There are fewer if start or stop is a multiple of the extent. Only the
index of start within its repeat matters, not which repeat it is: nest.pyx computes it, and where the source wraps
around.

Nothing here can fail, as in tiling.pyx.
"""

from tilecore._core.plan.nest cimport Nest, RegionIter, next_piece, region_iter_init
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.strided_arrays cimport StridedArray, strides_or_null
from tilecore._core.write.signals cimport check_signals
from tilecore._core.write.tiling cimport WriteOptions, write_nest


cdef int write_region(const Sizes *sizes, const StridedArray *source, const StridedArray *target,
                      const Py_ssize_t *start, const Py_ssize_t *shape, Py_ssize_t nbytes,
                      WriteOptions *options) noexcept nogil:
    """Write the region of `shape` at `start`, `nbytes` in all; return 0, or -1 if a signal handler raised.

    `target` has the region's shape. Unless `nbytes` is 0, no axis is empty.
    """
    cdef RegionIter iter
    cdef Nest nest
    if nbytes == 0:
        return 0
    region_iter_init(&iter, sizes, strides_or_null(source), strides_or_null(target), start, shape)
    while True:
        nbytes = next_piece(&iter, &nest)
        if nbytes == 0:
            return 0
        if write_nest(&nest, target.data, source.data, nbytes, options) < 0:
            return -1
        if check_signals(&options.signals, 256 * sizes.itemsize) < 0:  # it was prepared, too
            return -1
