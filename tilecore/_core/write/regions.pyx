# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
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

Nothing here can fail, as in execute.pyx: without memory for a table, there are pieces.
"""

from libc.stdlib cimport free, malloc

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.nest cimport Axis, Nest, nest_begin, nest_push, order_axes
from tilecore._core.plan.sizes cimport Sizes
from tilecore._core.request.places cimport Place, place_strides
from tilecore._core.write.execute cimport Mode, execute_watched, write_table
from tilecore._core.write.signals cimport Watch, look_for_signals, watch_begin


cdef enum:
    # Pieces of fewer bytes than this are slower than a table: preparing to write one takes about 0.2 us.
    SMALL_PIECE = 64
    # Elements in a table; with two offsets each they fit the first-level cache.
    TABLE = 2048


cdef struct Range:          # the region along one axis
    Py_ssize_t extent       # of the input
    Py_ssize_t first        # index of the region's first element in the input
    Py_ssize_t count        # elements of the region, 2 or more
    Py_ssize_t src, dst     # bytes from one element to the next


cdef struct Region:
    int n
    Range axis[MAX_RANK]    # innermost first
    Py_ssize_t itemsize
    Mode mode
    Watch watch


cdef int execute_region(const Sizes *sizes, const Place *source, const Place *target, const Py_ssize_t *start,
                        const Py_ssize_t *stop, Py_ssize_t nbytes, Mode mode) noexcept nogil:
    """Write [start, stop) of the tiling, `nbytes` in all; 0, or -1 if a signal handler has raised.

    `target` has the region's shape. If there are bytes, start < stop on every axis.
    """
    cdef const Py_ssize_t *src_strides = place_strides(source)
    cdef const Py_ssize_t *dst_strides = place_strides(target)
    cdef const char *src = source.data
    cdef char *dst = target.data
    cdef Region region
    cdef Nest nest
    cdef Range *axis
    cdef int order[MAX_RANK]
    cdef int i, k, padding = sizes.ndim - sizes.input_ndim
    cdef Py_ssize_t pitch[MAX_RANK]
    cdef Py_ssize_t packed = sizes.itemsize, pieces = 1, count, extent, step
    if nbytes == 0:
        return 0
    region.n = 0
    region.itemsize = sizes.itemsize
    region.mode = mode
    watch_begin(&region.watch, mode.poll)
    for k in range(sizes.ndim - 1, -1, -1):
        pitch[k] = src_strides[k - padding] if src_strides != NULL and k >= padding else packed
        packed *= sizes.shape[k]
        order[sizes.ndim - 1 - k] = k
    if dst_strides != NULL:
        order_axes(sizes, dst_strides, order)
    packed = sizes.itemsize
    for i in range(sizes.ndim):
        k = order[i]
        extent = sizes.shape[k]
        count = stop[k] - start[k]
        step = dst_strides[k] if dst_strides != NULL else packed
        packed *= count
        if count == 1:
            src += modulo(start[k], extent) * pitch[k]
            continue
        axis = &region.axis[region.n]
        region.n += 1
        if step > 0:
            axis[0] = Range(extent, modulo(start[k], extent), count, pitch[k], step)
        else:  # from the other end
            axis[0] = Range(extent, extent - 1 - modulo(stop[k] - 1, extent), count, -pitch[k], -step)
            src += (extent - 1) * pitch[k]
            dst += (count - 1) * step
        if pieces <= nbytes:
            pieces *= pieces_along(axis)
    if pieces > TABLE // 8 and nbytes // pieces < SMALL_PIECE:
        i = execute_table(&region, dst, src)
        if i <= 0:
            return i
    nest_begin(&nest, sizes.itemsize)
    return execute_pieces(&region, 0, &nest, dst, src, sizes.itemsize)


cdef Py_ssize_t modulo(Py_ssize_t a, Py_ssize_t n) noexcept nogil:
    """From 0 to n - 1, for negative `a` too."""
    cdef Py_ssize_t rest = a % n
    return rest + n if rest < 0 else rest


# ---------------------------------------------------------------- pieces

cdef Py_ssize_t pieces_along(const Range *axis) noexcept nogil:
    cdef Py_ssize_t head = axis.extent - axis.first if axis.first else 0
    if axis.count <= head:
        return 1
    return (head > 0) + (axis.count - head >= axis.extent) + ((axis.count - head) % axis.extent > 0)


cdef int execute_pieces(Region *region, int k, Nest *nest, char *dst, const char *src,
                        Py_ssize_t nbytes) noexcept nogil:
    """Put the loops of axis `k` and of those outside it round `nest`, once for each piece, and write."""
    cdef const Range *axis = &region.axis[k]
    cdef Py_ssize_t done = 0, first, length, repeats
    cdef int n = nest.n
    cdef Axis top = nest.axis[n - 1]
    if k == region.n:
        # A piece takes time of its own, however little it writes.
        if execute_watched(nest, dst, src, nbytes, region.mode, &region.watch) < 0:
            return -1
        return look_for_signals(&region.watch, 256 * region.itemsize)
    first = axis.first
    while done < axis.count:
        repeats = 1
        length = min(axis.extent - first, axis.count - done)
        if first == 0 and length == axis.extent:
            repeats = (axis.count - done) // axis.extent
        nest_push(nest, length, axis.src, axis.dst)
        nest_push(nest, repeats, 0, axis.dst * length)
        if execute_pieces(region, k + 1, nest, dst + done * axis.dst, src + first * axis.src,
                          nbytes * length * repeats) < 0:
            return -1
        nest.n = n  # as it was, for the next piece
        nest.axis[n - 1] = top
        done += length * repeats
        first = 0
    return 0


# ---------------------------------------------------------------- a table

cdef int execute_table(Region *region, char *dst, const char *src) noexcept nogil:
    """0 or -1 as execute_region; 1, with nothing written, if there is no memory for a table."""
    cdef Py_ssize_t *table = <Py_ssize_t *>malloc(2 * TABLE * sizeof(Py_ssize_t))
    cdef Py_ssize_t index[MAX_RANK]
    cdef const Range *axis
    cdef Py_ssize_t n = 1, i, j, at
    cdef int inner = 0, k, status = 0
    if table == NULL:
        return 1
    table[0] = table[TABLE] = 0
    while inner < region.n and n * region.axis[inner].count <= TABLE:
        axis = &region.axis[inner]
        for j in range(axis.count - 1, -1, -1):  # the first last: it is read by the others
            at = (axis.first + j) % axis.extent * axis.src
            for i in range(n):
                table[j * n + i] = table[i] + at
                table[TABLE + j * n + i] = table[TABLE + i] + j * axis.dst
        n *= axis.count
        inner += 1
    for k in range(inner, region.n):
        index[k] = 0
        src += region.axis[k].first * region.axis[k].src
    while True:
        write_table(table, table + TABLE, n, region.itemsize, dst, src)
        status = look_for_signals(&region.watch, n * max(region.itemsize, 16))
        if status < 0:
            break
        k = inner
        while k < region.n:  # one step of the innermost axis that has one left
            axis = &region.axis[k]
            at = (axis.first + index[k]) % axis.extent
            if index[k] < axis.count - 1:
                index[k] += 1
                src += axis.src if at < axis.extent - 1 else -at * axis.src
                dst += axis.dst
                break
            src += (axis.first - at) * axis.src
            dst -= index[k] * axis.dst
            index[k] = 0
            k += 1
        if k == region.n:
            break
    free(table)
    return status
