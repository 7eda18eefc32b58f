"""A region of a tiling: the part [start, stop) of it, or of the endless plane that the input tiles.

Along one axis a region is up to three pieces: the end of a first repeat, whole repeats, the start of a
last one. Input of extent 5, region [3, 17):

    tiling   0 1 2 3 4 0 1 2 3 4 0 1 2 3 4 0 1 2 ...
    region         3 4|0 1 2 3 4 0 1 2 3 4|0 1           pieces of 2, of 2 x 5, and of 2 elements

The pieces of all axes, combined, are nests of loops, and each is executed as a whole tiling is. There are fewer if
start or stop is a multiple of the extent. The first repeat may be any: only the place of start within it matters.

Many axes of a few elements each make more pieces than there is to write: 2 on each of 28 axes are 2^28 pieces of one
element. Then the inner axes become a table of the offsets of their elements, in the source and in the output, and the
loops outside go over the table again and again.

Nothing here can fail, as in tiling.pyx: without memory for a table, there are pieces.
"""

from libc.stdlib cimport free, malloc

from tilecore._core.plan.nest cimport Axis, Nest, RegionIter, Step, nest_begin, nest_push, next_item, region_iter_init
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.array_refs cimport ArrayRef, ref_strides
from tilecore._core.write.signals cimport check_signals
from tilecore._core.write.tiling cimport Mode, write_nest, write_table


cdef enum:
    # Pieces of fewer bytes than this are slower than a table: preparing to write one takes about 0.2 us.
    SMALL_PIECE = 64
    # Elements in a table; with two offsets each they fit the first-level cache.
    TABLE = 2048


cdef struct Region:
    RegionIter iter
    Py_ssize_t itemsize
    Mode *mode


cdef int write_region(const Sizes *sizes, const ArrayRef *source, const ArrayRef *target, const Py_ssize_t *start,
                      const Py_ssize_t *shape, Py_ssize_t nbytes, Mode *mode) noexcept nogil:
    """Write the region of `shape` at `start` of the tiling, `nbytes` in all; 0, or -1 if a signal handler has raised.

    `target` has the region's shape. If there are bytes, no axis is empty.
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
            pieces *= pieces_along(&region.iter.step[k])
    if pieces > TABLE // 8 and nbytes // pieces < SMALL_PIECE:
        k = write_by_table(&region, dst, src)
        if k <= 0:
            return k
    nest_begin(&nest, sizes.itemsize)
    return write_pieces(&region, 0, &nest, dst, src, sizes.itemsize)


# ---------------------------------------------------------------- pieces

cdef Py_ssize_t pieces_along(const Step *axis) noexcept nogil:
    cdef Py_ssize_t head = axis.extent - axis.first if axis.first else 0
    if axis.count <= head:
        return 1
    return (head > 0) + (axis.count - head >= axis.extent) + ((axis.count - head) % axis.extent > 0)


cdef int write_pieces(Region *region, int k, Nest *nest, char *dst, const char *src, Py_ssize_t nbytes) noexcept nogil:
    """Put the loops of axis `k` and of those outside it round `nest`, once for each piece, and write."""
    cdef const Step *axis = &region.iter.step[k]
    cdef Py_ssize_t done = 0, first, length, repeats
    cdef int n = nest.n
    cdef Axis top = nest.axis[n - 1]
    if k == region.iter.n:
        # A piece takes time of its own, however little it writes.
        if write_nest(nest, dst, src, nbytes, region.mode) < 0:
            return -1
        return check_signals(&region.mode.signals, 256 * region.itemsize)
    first = axis.first
    while done < axis.count:
        repeats = 1
        length = min(axis.extent - first, axis.count - done)
        if first == 0 and length == axis.extent:
            repeats = (axis.count - done) // axis.extent
        nest_push(nest, length, axis.src, axis.dst)
        nest_push(nest, repeats, 0, axis.dst * length)
        if write_pieces(region, k + 1, nest, dst + done * axis.dst, src + first * axis.src,
                        nbytes * length * repeats) < 0:
            return -1
        nest.n = n  # as it was, for the next piece
        nest.axis[n - 1] = top
        done += length * repeats
        first = 0
    return 0


# ---------------------------------------------------------------- a table

cdef int write_by_table(Region *region, char *dst, const char *src) noexcept nogil:
    """0 or -1 as write_region; 1, with nothing written, if there is no memory for a table."""
    cdef Py_ssize_t *table = <Py_ssize_t *>malloc(2 * TABLE * sizeof(Py_ssize_t))
    cdef Step *axis = region.iter.step
    cdef Py_ssize_t n = 1, i, j, at
    cdef int left = region.iter.n, k, status = 0
    if table == NULL:
        return 1
    table[0] = table[TABLE] = 0
    while left and n * axis.count <= TABLE:
        for j in range(axis.count - 1, -1, -1):  # the first last: it is read by the others
            at = (axis.first + j) % axis.extent * axis.src
            for i in range(n):
                table[j * n + i] = table[i] + at
                table[TABLE + j * n + i] = table[TABLE + i] + j * axis.dst
        n *= axis.count
        axis += 1
        left -= 1
    for k in range(left):
        src += axis[k].first * axis[k].src
    while True:
        write_table(table, table + TABLE, n, region.itemsize, dst, src)
        status = check_signals(&region.mode.signals, n * max(region.itemsize, 16))
        if status < 0 or not next_item(axis, left, 1, &dst, &src):
            break
    free(table)
    return status
