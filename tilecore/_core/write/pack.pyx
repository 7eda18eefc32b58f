# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A source that the innermost loops of a nest do not run along -> contiguous panels of it.

Transposed, reversed or strided, a source would be gathered item by item, once for each time that an item is written.
So it is packed first: a *panel*, a box of the source that fits the cache, is brought into the order of the output, by
kernels made for that; then it is tiled as any contiguous source is. Where nothing repeats, it is packed in its place in
the output, and that is all.

    nest of a transposed (1024, 1024) float32 tiled (2, 2):
                            run 4, 1024 x (4096, 4), 2 x (0, 4096), 1024 x (4, 8192), 2 x (0, 8388608)
    panel of 128 x 128:     packed 128 x (4096, 4), 128 x (4, 512), in scratch
    its nest:               run 512, 2 x (0, 4096), 128 x (512, 8192), 2 x (0, 8388608)

Whole cache lines are read and written: a panel covers some of them along the source, and along the output. Three
packers write two axes of a panel each, the inner one the innermost of the output:

    turn      another axis runs along the source: a transposition
    pick      the inner axis steps over a few items, forward or backward; or it has two to four steps, and so does the
              next one: interleaved channels
    gather    all else: item by item

The panels are numbered, as blocks are. Nothing here can fail.
"""

from tilecore._core.plan.nest cimport magnitude, nest_begin, nest_push


cdef enum:
    # Fewer items are gathered as they are written: to choose panels takes longer.
    LEAST_ITEMS = 4096
    LEAST_DIRECT_ITEMS = 512
    # A panel has this many bytes along the source, and as many along the output: enough for the processor to read
    # ahead, and for stores that bypass the cache. It lies in the second-level cache.
    SIDE_BYTES = 512
    PANEL_BYTES = 65536     # at least
    # Whole rows of the output repeat more quickly than parts; then this many bytes along the source will do.
    LEAST_SIDE_BYTES = 128
    # A panel that is packed in its place in the output needs no room. Where stores bypass the caches, it is wide,
    # for processors to read ahead, and long, for its ends share cache lines with others.
    DIRECT_BYTES = 262144
    STREAMED_SIDE_BYTES = 2048
    STREAMED_BYTES = 1 << 20
    # Rows of the output that lie whole pages apart fall into the same few places of every cache. From this size on
    # their stores bypass the caches, which would not hold them.
    ALIASED_BYTES = 1 << 22
    MOST_STEP_BYTES = 64    # that pick steps over: farther apart, each item has a cache line of its own
    MOST_WOVEN = 4          # channels
    # Bytes of a row from which its stores may bypass the caches.
    LEAST_STREAMED_TURNED = 512
    LEAST_STREAMED_PICKED = 2048
    LEAST_SHUFFLED = 64     # bytes of an axis from which shuffles pay
    PART_BYTES = 1 << 20    # and eight times the panel, at least: each thread that takes a part packs the panel
    # Steps, and 16 bytes, from which a transposition is quicker than to gather: along the source; and along the output,
    # where those of a tile will do.
    LEAST_COLUMNS = 4
    LEAST_ROWS = 10
    LONG_ENOUGH = 5         # steps of an innermost loop that gathers


cdef bint choose_panels(Panels *panels, const Nest *nest, const tilecore_kernels *kernels, bint stream,
                        bint warm) noexcept nogil:
    """Choose the panels and the packer; False if the source needs none. `dst` and `src` are set later."""
    cdef Py_ssize_t item = nest.axis[0].count, size = item, written = 1
    cdef const Axis *axis
    cdef int k, n = 0
    if item > 16 or item & (item - 1) or nest.n == 1:
        return False
    panels.direct = True
    for k in range(1, nest.n):
        axis = &nest.axis[k]
        written *= axis.count
        if axis.src == 0:
            panels.direct = False
            continue
        if n == 0 and axis.src == item:
            return False
        panels.axis[n] = axis[0]
        size *= axis.count
        n += 1
    if n == 0:
        return False
    if panels.direct and panels.axis[0].dst != item:
        return False  # from steps to steps
    if written < (LEAST_DIRECT_ITEMS if panels.direct else LEAST_ITEMS):
        return False
    panels.nest = nest
    panels.kernels = kernels
    panels.item = item
    panels.stream = stream
    panels.n = n
    choose_packer(panels)
    if (panels.direct and warm and panels.packer == TURN and size >= ALIASED_BYTES
            and panels.axis[panels.across].dst % 4096 == 0):
        panels.stream = True
    if panels.stream and (panels.packer == GATHER or panels.axis[panels.inner].count * item
                          < (LEAST_STREAMED_TURNED if panels.packer == TURN else LEAST_STREAMED_PICKED)):
        panels.direct = False
    choose_counts(panels)
    choose_parts(panels)
    return True


cdef void choose_packer(Panels *panels) noexcept nogil:
    cdef const Axis *axis = panels.axis
    cdef Py_ssize_t item = panels.item
    cdef int k, unit = 1
    panels.axis[panels.n] = Axis(1, 0, 0)
    for k in range(2, panels.n):
        if magnitude(axis[k].src) < magnitude(axis[unit].src):
            unit = k
    panels.unit = unit if panels.n > 1 else 0
    panels.inner, panels.across = 0, unit
    if (magnitude(axis[unit].src) == item and axis[unit].count >= max(16 // item, LEAST_COLUMNS)
            and axis[0].count >= min(max(16 // item, LEAST_ROWS), 32 // item)):
        panels.packer = TURN
    elif panels.kernels.pick != NULL and choose_pick(panels):
        panels.packer = PICK
    else:
        panels.packer = GATHER
        for k in range(1, panels.n):  # a long innermost loop, along the output where that is long enough
            if axis[panels.inner].count < LONG_ENOUGH and axis[k].count > axis[panels.inner].count:
                panels.inner = k
        if panels.inner:
            panels.across = 0


cdef bint choose_pick(Panels *panels) noexcept nogil:
    """Whether the inner axis, or groups of its few steps, can be picked; then it is prepared."""
    cdef const Axis *axis = panels.axis
    cdef Py_ssize_t item = panels.item, along = axis[0].src, count = axis[0].count, step = axis[1].src
    if axis[0].count > MOST_WOVEN:
        step = along
        along, count = 0, 1
        if axis[0].count * item < LEAST_SHUFFLED:
            return False
    elif count * axis[1].count * item < LEAST_SHUFFLED or (panels.direct and axis[1].dst != count * item):
        return False
    if step != item and (along % item or magnitude(along) * (count - 1) + item > magnitude(step)):
        return False  # neither in rows of their own, nor together
    if (step % item or magnitude(step) > MOST_STEP_BYTES
            or not tilecore_prepare_pick(&panels.shuffles, count, along, step, item)):
        return False
    if count > 1:
        panels.inner, panels.across = 1, 0
    return True


cdef void choose_counts(Panels *panels) noexcept nogil:
    """How much of each axis makes a panel."""
    cdef Py_ssize_t item = panels.item, side = SIDE_BYTES, nbytes = max(PANEL_BYTES, SIDE_BYTES * SIDE_BYTES // item)
    cdef Py_ssize_t packed = item, left, count, step
    cdef const Axis *axis = panels.axis
    cdef int k, unit = panels.unit
    if panels.direct:
        nbytes = DIRECT_BYTES
        if panels.stream:
            nbytes, side = STREAMED_BYTES, STREAMED_SIDE_BYTES
    elif axis[0].count <= nbytes // LEAST_SIDE_BYTES:
        side = min(side, nbytes // axis[0].count)
    left = nbytes // item
    for k in range(panels.n):
        panels.count[k] = 1
    step = magnitude(axis[unit].src)
    if unit and step < side and (panels.packer != PICK or step < magnitude(axis[0].src)):
        take(panels, unit, side // step, &left)
    for k in range(panels.n):
        if panels.count[k] == 1:
            take(panels, k, left, &left)
    if unit and left > 1 and panels.count[unit] < axis[unit].count:
        left *= panels.count[unit]
        panels.count[unit] = 1
        take(panels, unit, left, &left)
    panels.total = 1
    for k in range(panels.n):
        count = panels.count[k]
        panels.packed[k] = packed
        packed *= count
        if k == 0 and panels.n > 1 and count < axis[0].count and packed % 1024 == 0:
            packed += 64  # not all columns in the same few places of the first-level cache
        panels.total *= (axis[k].count + count - 1) // count
    panels.packed[panels.n] = 0
    panels.count[panels.n] = 1
    panels.nbytes = packed


cdef void choose_parts(Panels *panels) noexcept nogil:
    """How many parts are made of each panel."""
    cdef const Nest *nest = panels.nest
    cdef Py_ssize_t nbytes = panels.nbytes, parts
    cdef int k
    panels.split, panels.parts = 0, 0
    for k in range(1, nest.n):
        if nest.axis[k].src == 0:
            nbytes *= nest.axis[k].count  # no more than the result takes, nearly
    nbytes //= max(PART_BYTES, 8 * panels.nbytes)
    for k in range(nest.n - 1, 0, -1):  # of an outer one, the parts lie together in the output
        parts = min(nest.axis[k].count, nbytes + 1)
        if nest.axis[k].src == 0 and parts > 4 * panels.parts:
            panels.split, panels.parts = k, parts
    panels.parts = max(panels.parts, 1)
    panels.total *= panels.parts


cdef void take(Panels *panels, int k, Py_ssize_t most, Py_ssize_t *left) noexcept nogil:
    """At most `most` steps of an axis, in parts of nearly equal length: whole cache lines, where it is inner."""
    cdef Py_ssize_t all_steps = panels.axis[k].count, count = min(all_steps, max(most, 1)), parts, line
    if count < all_steps:
        parts = (all_steps + count - 1) // count
        line = 64 // panels.item
        count = (all_steps + parts - 1) // parts
        if count > line:
            count = (count + line - 1) // line * line
    panels.count[k] = count
    left[0] = max(left[0] // count, 1)


cdef void find_panel(const Panels *panels, Py_ssize_t number, Py_ssize_t *count, char **dst,
                     const char **src) noexcept nogil:
    """Its counts, for the last of an axis is shorter, and where it begins."""
    cdef const Axis *axis
    cdef Py_ssize_t parts, first
    cdef int k
    dst[0], src[0] = panels.dst, panels.src
    count[panels.n] = 1
    for k in range(panels.n):
        axis = &panels.axis[k]
        parts = (axis.count + panels.count[k] - 1) // panels.count[k]
        first = number % parts * panels.count[k]
        number //= parts
        count[k] = min(panels.count[k], axis.count - first)
        dst[0] += first * axis.dst
        src[0] += first * axis.src


cdef void pack_panel(const Panels *panels, const Py_ssize_t *count, char *dst, const char *src) noexcept nogil:
    """Pack a panel of `count` steps; `dst`: scratch, or where a direct one begins in the output."""
    cdef Py_ssize_t index[MAX_RANK]
    cdef Py_ssize_t step[MAX_RANK + 1]
    cdef int k
    for k in range(panels.n + 1):
        step[k] = panels.axis[k].dst if panels.direct else panels.packed[k]
        index[k] = 0
    while True:
        pack_two_axes(panels, count, step, dst, src)
        k = 0
        while k < panels.n:
            if k != panels.inner and k != panels.across:
                if index[k] < count[k] - 1:
                    index[k] += 1
                    dst += step[k]
                    src += panels.axis[k].src
                    break
                dst -= index[k] * step[k]
                src -= index[k] * panels.axis[k].src
                index[k] = 0
            k += 1
        if k == panels.n:
            return


cdef void pack_two_axes(const Panels *panels, const Py_ssize_t *count, const Py_ssize_t *step, char *dst,
                        const char *src) noexcept nogil:
    cdef const tilecore_kernels *kernels = panels.kernels
    cdef int inner = panels.inner, across = panels.across
    cdef Py_ssize_t item = panels.item, along = panels.axis[inner].src, src_pitch = panels.axis[across].src
    cdef Py_ssize_t dst_pitch = step[across]
    if panels.packer == TURN:
        if src_pitch < 0:  # from the other end
            dst += (count[across] - 1) * dst_pitch
            src += (count[across] - 1) * src_pitch
            dst_pitch = -dst_pitch
        kernels.turn(dst, dst_pitch, src, along, count[inner], count[across], item, not panels.direct,
                     panels.direct and panels.stream)
    elif panels.packer == PICK:
        kernels.pick(&panels.shuffles, dst, dst_pitch, src, src_pitch, 1 if inner else count[across], count[inner],
                     panels.stream and panels.direct)
    else:
        tilecore_gather(dst, dst_pitch, step[inner], src, src_pitch, along, count[across], count[inner], item)


cdef char *panel_nest(const Panels *panels, const Py_ssize_t *count, Py_ssize_t part, bint packed, char *dst,
                      Nest *nest) noexcept nogil:
    """The loops that write a part of what a panel of `count` steps gives, packed or from the source itself.

    Returns where the part begins, in the output of the panel at `dst`.
    """
    cdef const Axis *axis
    cdef Py_ssize_t first, last
    cdef int i, k = 0
    nest_begin(nest, panels.item)
    for i in range(1, panels.nest.n):
        axis = &panels.nest.axis[i]
        if axis.src == 0:
            first, last = 0, axis.count
            if i == panels.split:
                first = part * (axis.count // panels.parts) + min(part, axis.count % panels.parts)
                last = first + axis.count // panels.parts + (part < axis.count % panels.parts)
                dst += first * axis.dst
            nest_push(nest, last - first, 0, axis.dst)
        else:
            nest_push(nest, count[k], panels.packed[k] if packed else axis.src, axis.dst)
            k += 1
    return dst
