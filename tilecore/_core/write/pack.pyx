"""A source that the innermost loops of a nest do not run along -> contiguous panels of it.

Transposed, reversed or strided, a source would be gathered item by item, once for each time that an item is written.
So it is packed first: a *panel*, a box of the source that fits the cache, is brought into the order of the output, by
kernels made for that; then it is tiled as any contiguous source is. Where nothing repeats, it is packed in its place in
the output, and that is all.

    nest of a transposed (1024, 1024) float32 tiled (2, 2):
                            run 4, 1024 x (4096, 4), 2 x (0, 4096), 1024 x (4, 8192), 2 x (0, 8388608)
    panel of 128 x 128:     packed 128 x (4096, 4), 128 x (4, 512), in scratch
    its nest:               run 512, 2 x (0, 4096), 128 x (512, 8192), 2 x (0, 8388608)

Where the outermost loop repeats, and what is inside it fits the caches, only that is written so: the other repeats are
long copies of the first one, in the output.

    nest of a transposed (300, 300, 3) bytes tiled (4, 1, 1):
                            run 1, 3 x (90000, 1), 300 x (300, 3), 300 x (1, 900), 4 x (0, 270000)
    packed in its place:    run 1, 3 x (90000, 1), 300 x (300, 3), 300 x (1, 900)
    and repeated:           run 270000, 3 x (0, 270000), from the output's first byte

Whole cache lines are read and written: a panel covers some of them along the source, and along the output. Three
packers write two axes of a panel each, the inner one the innermost of the output:

    turn      another axis runs along the source, or a few steps of one and then the next: a transposition
    pick      the inner axis steps over a few items, forward or backward; or it has two to four steps, and so does the
              next one: interleaved channels
    gather    all else: item by item

The panels are numbered, as blocks are, and so are the parts of what is made of each. Nothing here can fail.
"""

from tilecore._core.plan.nest cimport MOST_AXES, Step, advance, magnitude, nest_begin, nest_push
from tilecore._core.write.processor cimport (
    TILECORE_BY_TILES, TILECORE_CELL_BYTES, TILECORE_PAST_CACHES, kernels, tilecore_gather, tilecore_prepare_deinterleave,
)


cdef enum:
    # Fewer items, in fewer rows, are gathered as they are written: to choose panels takes longer.
    LEAST_ITEMS = 4096
    LEAST_GATHERED_ROWS = 128
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
    CACHED_BYTES = 1 << 20  # of an output that the second-level cache may hold, with a source of this size
    MOST_STEP_BYTES = 64    # that pick steps over: farther apart, each item has a cache line of its own
    MOST_WOVEN = 4          # channels
    # Bytes of a row from which its stores may bypass the caches.
    LEAST_STREAMED_TURNED = 512
    LEAST_STREAMED_PICKED = 2048
    LEAST_SHUFFLED = 64     # bytes of an axis from which shuffles pay
    PART_BYTES = 1 << 20    # and eight times the panel, at least: each thread that takes a part packs the panel
    # From so many steps of 16 bytes on, a transposition is quicker than gathering: LEAST_COLUMNS along the source, and
    # LEAST_ROWS along the output, where the steps of one tile are enough.
    LEAST_COLUMNS = 4
    LEAST_ROWS = 10
    LONG_ENOUGH = 5         # steps of an innermost loop that gathers


cdef bint runs_along(const Nest *nest) noexcept nogil:
    """Whether the items of the source lie together along the innermost axis that moves in it, or there is none."""
    cdef Py_ssize_t item = nest.axis[0].count
    cdef int k
    if item > 16 or item & (item - 1):
        return True
    for k in range(1, nest.n):
        if nest.axis[k].src != 0:
            return nest.axis[k].src == item
    return True


cdef bint packs_first(const Nest *nest, Nest *first, Nest *others) noexcept nogil:
    """Whether the outermost loop repeats what has to be packed, and will lie in long runs.

    `first`: the loops inside it; `others`: those that write its other repeats, from the first in the output.
    """
    cdef const Axis *top = &nest.axis[nest.n - 1]
    cdef int k
    if top.src != 0 or runs_along(nest):
        return False
    nest_begin(others, nest.axis[0].count)
    for k in range(1, nest.n - 1):
        nest_push(others, nest.axis[k].count, nest.axis[k].dst, nest.axis[k].dst)
    nest_push(others, top.count - 1, 0, top.dst)
    others.src, others.dst = nest.dst, nest.dst + top.dst
    first[0] = nest[0]
    first.n -= 1
    return others.axis[0].count >= SIDE_BYTES


cdef bint choose_panels(Panels *panels, const Nest *nest, bint stream, bint warm) noexcept nogil:
    """Choose the panels and the packer; False if the source needs none."""
    cdef Py_ssize_t item = nest.axis[0].count, size = item, written = 1, rows = 1
    cdef const Axis *axis
    cdef int k, n = 0
    if runs_along(nest):
        return False
    panels.direct = True
    for k in range(1, nest.n):
        axis = &nest.axis[k]
        written *= axis.count
        if (n > 0 or axis.src == 0) and (axis.src != 0 or k < nest.n - 1):  # what repeats outermost is copied
            rows *= axis.count
        if axis.src == 0:
            panels.direct = False
            continue
        panels.axis[n] = axis[0]
        size *= axis.count
        n += 1
    if panels.direct and panels.axis[0].dst != item:
        return False  # from steps to steps
    if written < LEAST_DIRECT_ITEMS if panels.direct else written < LEAST_ITEMS and rows < LEAST_GATHERED_ROWS:
        return False
    panels.nest = nest
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
    panels.where = TILECORE_BY_TILES
    if panels.direct and panels.stream:
        panels.where = TILECORE_PAST_CACHES
    elif panels.direct and size > CACHED_BYTES:
        panels.where = kernels.into_memory
    panels.cell_bytes = 0
    if panels.packer == TURN and (panels.where == TILECORE_PAST_CACHES or panels.axis[0].src % 1024 == 0):
        panels.cell_bytes = TILECORE_CELL_BYTES
    choose_counts(panels)
    size = written * item // size * panels.nbytes  # of what is made of a panel, nearly
    panels.parts = size // max(PART_BYTES, 8 * panels.nbytes) + 1
    panels.total *= panels.parts
    return True


cdef void choose_packer(Panels *panels) noexcept nogil:
    cdef const Axis *axis = panels.axis
    cdef Py_ssize_t item = panels.item, columns, least = max(16 // item, LEAST_COLUMNS)
    cdef int k, unit = 1
    panels.axis[panels.n] = Axis(1, 0, 0)
    for k in range(2, panels.n):
        if magnitude(axis[k].src) < magnitude(axis[unit].src):
            unit = k
    panels.unit = unit if panels.n > 1 else 0
    panels.inner, panels.across = 0, unit
    panels.joined = 0
    columns = axis[unit].count
    for k in range(1, panels.n if columns < least else 0):
        if k != unit and axis[k].src == axis[unit].src * axis[unit].count:
            panels.joined = k
            columns *= axis[k].count
    # Items of 16 bytes are only moved: cells pay where the rows fall into the same places of the caches, or streams.
    if (magnitude(axis[unit].src) == item and columns >= least
            and (item < 16 or panels.stream or axis[0].src % 1024 == 0)
            and axis[0].count >= min(max(16 // item, LEAST_ROWS), 32 // item)):
        panels.packer = TURN
        if panels.joined:
            panels.direct = False
        return
    panels.joined = 0
    if kernels.deinterleave != NULL and choose_pick(panels):
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
            or not tilecore_prepare_deinterleave(&panels.shuffles, count, along, step, item)):
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
    if panels.joined:
        take(panels, panels.joined, side // magnitude(axis[panels.joined].src), &left)
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
        if k == 0 or k != panels.joined:
            panels.packed[k] = packed
            packed *= count
        if k == 0 and panels.n > 1 and count < axis[0].count and packed % 1024 == 0:
            packed += 64  # not all columns in the same few places of the first-level cache
        if k == unit and panels.joined:
            panels.packed[panels.joined] = packed
            packed *= panels.count[panels.joined]
        panels.total *= (axis[k].count + count - 1) // count
    panels.packed[panels.n] = 0
    panels.count[panels.n] = 1
    panels.nbytes = packed


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
    """Its counts, for the last of an axis is shorter; go to where it begins."""
    cdef const Axis *axis
    cdef Py_ssize_t parts, first
    cdef int k
    count[panels.n] = 1
    for k in range(panels.n):
        axis = &panels.axis[k]
        parts = (axis.count + panels.count[k] - 1) // panels.count[k]
        first = number % parts * panels.count[k]
        number //= parts
        count[k] = min(panels.count[k], axis.count - first)
        dst[0] += first * axis.dst
        src[0] += first * axis.src


cdef void pack_panel(const Panels *panels, const Py_ssize_t *count, char *dst, const char *src,
                     char *cells) noexcept nogil:
    """Pack a panel of `count` steps; `dst`: scratch, or where a direct one begins in the output."""
    cdef Step others[MOST_AXES]
    cdef Py_ssize_t step[MOST_AXES]
    cdef int k, n = 0
    for k in range(panels.n + 1):
        step[k] = panels.axis[k].dst if panels.direct else panels.packed[k]
        if k < panels.n and k != panels.inner and k != panels.across and k != panels.joined:
            others[n] = Step(count[k], count[k], 0, 0, panels.axis[k].src, step[k], 0)
            n += 1
    while True:
        pack_two_axes(panels, count, step, dst, src, cells)
        if not advance(others, n, 1, &dst, &src):
            return


cdef void pack_two_axes(const Panels *panels, const Py_ssize_t *count, const Py_ssize_t *step, char *dst,
                        const char *src, char *cells) noexcept nogil:
    cdef int inner = panels.inner, across = panels.across
    cdef Py_ssize_t item = panels.item, along = panels.axis[inner].src, src_pitch = panels.axis[across].src
    cdef Py_ssize_t dst_pitch = step[across], columns = count[across]
    if panels.packer == TURN:
        if panels.joined:
            columns *= count[panels.joined]
        if src_pitch < 0:  # from the other end
            dst += (columns - 1) * dst_pitch
            src += (columns - 1) * src_pitch
            dst_pitch = -dst_pitch
        kernels.transpose(dst, dst_pitch, src, along, count[inner], columns, item, panels.where, cells)
    elif panels.packer == PICK:
        kernels.deinterleave(&panels.shuffles, dst, dst_pitch, src, src_pitch, 1 if inner else count[across], count[inner],
                     panels.where == TILECORE_PAST_CACHES)
    else:
        tilecore_gather(dst, dst_pitch, step[inner], src, src_pitch, along, count[across], count[inner], item)


cdef void panel_nest(const Panels *panels, const Py_ssize_t *count, bint packed, Nest *nest) noexcept nogil:
    """The loops that write what a panel of `count` steps gives, packed or from the source itself."""
    cdef const Axis *axis
    cdef int i, k = 0
    nest_begin(nest, panels.item)
    for i in range(1, panels.nest.n):
        axis = &panels.nest.axis[i]
        if axis.src == 0:
            nest_push(nest, axis.count, 0, axis.dst)
        else:
            nest_push(nest, count[k], panels.packed[k] if packed else axis.src, axis.dst)
            k += 1
