"""A source that is not contiguous along the output's inner loops -> contiguous panels of it.

A transposed, reversed or strided source would be gathered item by item, again for each copy. So it is packed first:
kernels copy a *panel*, a box of the source that fits the cache, into the order of the output. Then the panel is tiled
as any contiguous source is. If nothing repeats, panels are packed directly into the output.

    nest of a transposed (1024, 1024) float32 tiled (2, 2):
                            run 4, 1024 x (4096, 4), 2 x (0, 4096), 1024 x (4, 8192), 2 x (0, 8388608)
    panel of 128 x 128:     packed 128 x (4096, 4), 128 x (4, 512), in scratch
    its nest:               run 512, 2 x (0, 4096), 128 x (512, 8192), 2 x (0, 8388608)

A panel is packed by loops of its own, without the repeats. A loop that continues another one in the source merges with
it, even if a repeat lies between them in the output:

    nest of every second of (401, 316, 5) bytes, tiled (2, 1, 3), is
                            run 1, 5 x (2, 1), 3 x (0, 5), 158 x (10, 15), 401 x (3160, 2370), 2 x (0, 950370)
    packed by:              790 x (2, 1), 401 x (3160, 790)

A panel covers whole cache lines, along the source and along the output. Each of three packers takes two loops at once,
of which the inner one is the innermost of the output:

    transpose       the other loop is contiguous in the source; a short one merges with the loop that continues it
    deinterleave    the inner loop steps over a few items, forward or backward; or it has two to four steps, and the
                    next loop steps over a few items: interleaved channels
    gather          all other sources: item by item

Panels are numbered, as blocks are, and so are the parts of each panel's output. Nothing here can fail.
"""

from libc.stdlib cimport free, malloc

from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, LoopIter, Nest, continues, nest_begin, nest_push, next_step
from tilecore._core.request.strided_arrays cimport magnitude
from tilecore._core.write.blocks cimport Blocks, choose_blocks, write_blocks
from tilecore._core.write.processor cimport TILECORE_BY_TILES, TILECORE_CELL_BYTES, TILECORE_PAST_CACHES, kernels
from tilecore._core.write.processor cimport tilecore_gather, tilecore_prepare_deinterleave


cdef enum:
    # Fewer items in fewer rows are gathered while they are written: choosing panels takes longer.
    MIN_ITEMS = 4096
    MIN_GATHERED_ROWS = 128
    MIN_DIRECT_ITEMS = 512
    PANEL_BYTES = 65536     # of a panel, at least
    # A panel has this many bytes along the source, and along the output: enough for the processor to read ahead, and
    # for stores that bypass the cache. SIDE_BYTES**2 / itemsize bytes fit the second-level cache: see choose_counts.
    SIDE_BYTES = 512
    # Whole rows of the output repeat faster than parts. For whole rows, a panel may be this short along the source.
    MIN_SIDE_BYTES = 128
    # A panel that is packed directly into the output. If stores bypass the caches, it is wide for prefetching, and long
    # to amortise the cache lines that it shares with other panels.
    DIRECT_BYTES = 262144
    STREAMED_SIDE_BYTES = 2048
    STREAMED_BYTES = 1 << 20
    # Rows of the output that lie whole pages apart map to the same few sets of each cache. From this size on their
    # stores bypass the caches, which could not hold them.
    ALIASED_BYTES = 1 << 22
    CACHED_BYTES = 1 << 20  # an output that may fit the second-level cache together with its source
    MAX_STEP_BYTES = 64    # of `deinterleave`: farther apart, each item has a cache line of its own
    MAX_CHANNELS = 4       # that `deinterleave` separates
    MIN_STREAMED_TRANSPOSED = 512       # rows of this many bytes or more may bypass the caches
    MIN_STREAMED_DEINTERLEAVED = 2048   # likewise
    MIN_SHUFFLED = 64       # bytes of a loop from which on shuffles pay
    PART_BYTES = 1 << 20    # at least, and eight times the panel: each thread that takes a part packs the panel again
    # A transposition is faster than gathering from 16 bytes and this many items on: MIN_COLUMNS along the source, and
    # MIN_ROWS along the output, where the 32 bytes of a tile are always enough.
    MIN_COLUMNS = 4
    MIN_ROWS = 10
    LONG_ENOUGH = 5         # steps of an innermost loop that gathers


cdef bint needs_packing(const Nest *nest) noexcept nogil:
    """Whether the source is not contiguous along the innermost loop that moves in it, and a packer takes such items."""
    cdef Py_ssize_t itemsize = nest.loop[0].count
    cdef int k
    if itemsize > 16 or itemsize & (itemsize - 1):
        return False
    for k in range(1, nest.n):
        if nest.loop[k].src != 0:
            return nest.loop[k].src != itemsize
    return False


cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, bint stream,
                        bint prefaulted) noexcept nogil:
    """Choose the panels and the packer; False if the source needs none."""
    cdef Py_ssize_t itemsize = nest.loop[0].count, size = itemsize, written = 1, rows = 1
    cdef const Loop *loop
    cdef int k, n = 0
    if not needs_packing(nest):
        return False
    panels.direct = True
    for k in range(1, nest.n):
        loop = &nest.loop[k]
        written *= loop.count
        if (n > 0 or loop.src == 0) and (loop.src != 0 or k < nest.n - 1):  # outermost repeats are copied
            rows *= loop.count
        panels.count[k] = loop.count
        panels.step[k] = 0
        if loop.src == 0:
            panels.direct = False
            continue
        panels.level[n] = k
        size *= loop.count
        n += 1
    if panels.direct and nest.loop[1].dst != itemsize:
        return False  # strided to strided: packing does not help
    if panels.direct and written < MIN_DIRECT_ITEMS:
        return False
    if not panels.direct and written < MIN_ITEMS and rows < MIN_GATHERED_ROWS:
        return False
    panels.nest, panels.dst, panels.src, panels.itemsize, panels.stream, panels.n = nest, dst, src, itemsize, stream, n
    merge_loops(panels)
    choose_packer(panels)
    choose_stores(panels, size, prefaulted)
    choose_counts(panels)
    # `written * itemsize // size` copies of each panel, roughly.
    panels.parts = written * itemsize // size * panels.nbytes // max(PART_BYTES, 8 * panels.nbytes) + 1
    panels.total *= panels.parts
    return True


cdef void choose_stores(Panels *panels, Py_ssize_t size, bint prefaulted) noexcept nogil:
    """Choose how a source of `size` bytes is stored: whether past the caches, and whether directly into the output."""
    cdef const Loop *loop = panels.packing.loop
    cdef bint transposed = panels.packer == TRANSPOSE
    cdef Py_ssize_t row = loop[panels.inner].count * panels.itemsize
    if panels.direct and prefaulted and transposed and size >= ALIASED_BYTES and loop[panels.across].dst % 4096 == 0:
        panels.stream = True
    if panels.stream and (panels.packer == GATHER
                          or row < (MIN_STREAMED_TRANSPOSED if transposed else MIN_STREAMED_DEINTERLEAVED)):
        panels.direct = False
    panels.store_mode = TILECORE_BY_TILES
    if panels.direct and panels.stream:
        panels.store_mode = TILECORE_PAST_CACHES
    elif panels.direct and size > CACHED_BYTES:
        panels.store_mode = kernels.into_memory
    panels.cell_bytes = 0
    if transposed and (panels.store_mode == TILECORE_PAST_CACHES or loop[1].src % 1024 == 0):
        panels.cell_bytes = TILECORE_CELL_BYTES


cdef bint can_transpose(const Loop *inner, Py_ssize_t step, Py_ssize_t columns, Py_ssize_t itemsize,
                        bint stream) noexcept nogil:
    """Whether a transposition is faster than gathering, for `columns` steps of `step` bytes along the source."""
    # Items of 16 bytes need no shuffles: only cells pay, for rows in the same cache sets, or stores past the caches.
    return (magnitude(step) == itemsize and columns >= max(16 // itemsize, MIN_COLUMNS)
            and (itemsize < 16 or stream or inner.src % 1024 == 0)
            and inner.count >= min(max(16 // itemsize, MIN_ROWS), 32 // itemsize))


cdef void merge_loops(Panels *panels) noexcept nogil:
    """Fill `packing`, the loops that pack. A short one along the source is merged with the one that continues it."""
    cdef const Loop *loop = &panels.nest.loop[0]
    cdef const Loop *inner = &loop[panels.level[0]]
    cdef const Loop *unit
    cdef const Loop *other
    cdef Nest *packing = &panels.packing
    cdef Py_ssize_t itemsize = panels.itemsize, size = itemsize
    cdef int *level = panels.level
    cdef int k, u = 1
    for k in range(2, panels.n):
        if magnitude(loop[level[k]].src) < magnitude(loop[level[u]].src):
            u = k
    for k in range(1, panels.n):
        unit = &loop[level[u]]
        other = &loop[level[k]]
        if (k != u and continues(other.src, unit.count, unit.src)
                and not can_transpose(inner, unit.src, unit.count, itemsize, panels.stream)
                and can_transpose(inner, unit.src, unit.count * other.count, itemsize, panels.stream)):
            while k > u + 1:
                level[k], level[k - 1] = level[k - 1], level[k]
                k -= 1
            while k < u:
                level[k], level[k + 1] = level[k + 1], level[k]
                k += 1
            panels.direct = False
            break
    nest_begin(packing, itemsize)
    for k in range(panels.n):
        other = &loop[level[k]]
        nest_push(packing, other.count, other.src, other.dst if panels.direct else size)
        panels.merged[k] = packing.n - 1
        size *= other.count


cdef void choose_packer(Panels *panels) noexcept nogil:
    cdef Loop *loop = panels.packing.loop
    cdef int k, n = panels.packing.n, unit = 2
    loop[n] = Loop(1, 0, 0)  # `across` if there is but one loop
    for k in range(3, n):
        if magnitude(loop[k].src) < magnitude(loop[unit].src):
            unit = k
    panels.unit = unit if n > 2 else 0
    panels.inner, panels.across = 1, unit
    if can_transpose(&loop[1], loop[unit].src, loop[unit].count, panels.itemsize, panels.stream):
        panels.packer = TRANSPOSE
    elif kernels.deinterleave != NULL and choose_deinterleave(panels):
        panels.packer = DEINTERLEAVE
    else:
        panels.packer = GATHER
        for k in range(2, n):  # the innermost loop: along the output, or a longer one if that is short
            if loop[panels.inner].count < LONG_ENOUGH and loop[k].count > loop[panels.inner].count:
                panels.inner = k
        if panels.inner > 1:
            panels.across = 1


cdef bint choose_deinterleave(Panels *panels) noexcept nogil:
    """Whether the inner loop, or groups of its few steps, can be deinterleaved. If so, prepare the kernel."""
    cdef const Loop *loop = &panels.packing.loop[1]
    cdef Py_ssize_t itemsize = panels.itemsize, along = loop[0].src, count = loop[0].count, step = loop[1].src
    if loop[0].count > MAX_CHANNELS:
        step, along, count = along, 0, 1
        if loop[0].count * itemsize < MIN_SHUFFLED:
            return False
    elif count * loop[1].count * itemsize < MIN_SHUFFLED or (panels.direct and loop[1].dst != count * itemsize):
        return False
    if step != itemsize and (along % itemsize or magnitude(along) * (count - 1) + itemsize > magnitude(step)):
        return False  # channels neither in rows of their own, nor all within one step
    if (step % itemsize or magnitude(step) > MAX_STEP_BYTES
            or not tilecore_prepare_deinterleave(&panels.shuffles, count, along, step, itemsize)):
        return False
    if count > 1:
        panels.inner, panels.across = 2, 1
    return True


cdef void choose_counts(Panels *panels) noexcept nogil:
    """Choose the steps of each loop in a panel: first along the source, then along the output, innermost first."""
    cdef Py_ssize_t itemsize = panels.itemsize, side = SIDE_BYTES, nbytes = itemsize, left, count, step
    cdef Py_ssize_t budget = max(PANEL_BYTES, SIDE_BYTES * SIDE_BYTES // itemsize)
    cdef Py_ssize_t row_items = panels.nest.loop[panels.level[0]].count
    cdef Loop *loop = panels.packing.loop
    cdef Py_ssize_t steps[MAX_LOOPS]
    cdef int i, k, unit = panels.unit
    if panels.direct:
        budget = DIRECT_BYTES
        if panels.stream:
            budget, side = STREAMED_BYTES, STREAMED_SIDE_BYTES
    elif row_items <= budget // MIN_SIDE_BYTES:
        side = min(side, budget // row_items)
    left, step = budget // itemsize, magnitude(loop[unit].src)
    for k in range(1, panels.packing.n):
        steps[k] = 1
    if unit and step < side and (panels.packer != DEINTERLEAVE or step < magnitude(loop[1].src)):
        steps[unit] = choose_steps(panels, unit, side // step, &left)
    for k in range(1, panels.packing.n):
        if steps[k] == 1:
            steps[k] = choose_steps(panels, k, left, &left)
    if unit and left > 1 and steps[unit] < loop[unit].count:
        left *= steps[unit]
        steps[unit] = choose_steps(panels, unit, left, &left)
    panels.total = 1
    for k in range(panels.n):
        i = panels.level[k]
        if k > 0 and panels.merged[k] == 2 > panels.merged[k - 1] and steps[1] < loop[1].count and nbytes % 1024 == 0:
            nbytes += 64  # where loop 2 begins: its steps map to different sets of the first-level cache
        if not panels.direct and (k == 0 or panels.merged[k] > panels.merged[k - 1]):
            loop[panels.merged[k]].dst = nbytes
        panels.step[i] = nbytes
        count = panels.count[i]
        nbytes *= count
        panels.total *= (panels.nest.loop[i].count + count - 1) // count
    panels.nbytes = nbytes


cdef Py_ssize_t choose_steps(Panels *panels, int merged, Py_ssize_t limit, Py_ssize_t *left) noexcept nogil:
    """Choose at most `limit` steps of a loop of `packing`, and return how many; `left`: items that still fit a panel.

    A loop is cut into panels of nearly equal length, the inner loop into whole cache lines.
    """
    cdef Py_ssize_t chosen = 1, all_steps, count, panels_along, line
    cdef int k
    for k in range(panels.n):
        if panels.merged[k] != merged:
            continue
        all_steps = panels.nest.loop[panels.level[k]].count
        count = min(all_steps, max(limit // chosen, 1))
        if count < all_steps:
            panels_along = (all_steps + count - 1) // count
            line = 64 // panels.itemsize
            count = (all_steps + panels_along - 1) // panels_along
            if count > line and chosen == 1:
                count = (count + line - 1) // line * line
        panels.count[panels.level[k]] = count
        chosen *= count
    left[0] = max(left[0] // chosen, 1)
    return chosen


cdef void write_panels(void *of_panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the parts numbered first to last - 1."""
    cdef const Panels *panels = <const Panels *>of_panels
    cdef void *scratch = NULL
    cdef char *cells = NULL     # scratch of a transposition that needs it
    cdef char *panel = NULL     # scratch, unless panels are direct
    cdef char *dst
    cdef const char *src
    cdef Blocks blocks
    cdef Nest nest
    cdef Py_ssize_t count[MAX_LOOPS]
    cdef Py_ssize_t number, panel_number, part, begin, end, in_scratch = -1
    if panels.cell_bytes or not panels.direct:
        scratch = malloc(panels.cell_bytes + (0 if panels.direct else panels.nbytes) + 64)
    if scratch != NULL:
        panel = <char *>((<size_t>scratch + 63) & ~<size_t>63)
        if panels.cell_bytes:
            cells = panel
            panel += panels.cell_bytes
    for number in range(first, last):
        dst, src = panels.dst, panels.src
        panel_number, part = number // panels.parts, number % panels.parts
        find_panel(panels, panel_number, count, &dst, &src)
        if panels.direct:
            pack_panel(panels, count, dst, src, cells)
            continue
        if scratch != NULL and in_scratch != panel_number:
            in_scratch = panel_number
            pack_panel(panels, count, panel, src, cells)
        panel_nest_init(panels, count, scratch != NULL, &nest)
        choose_blocks(&blocks, &nest, panels.stream, True)
        blocks.dst, blocks.src = dst, <const char *>panel if scratch != NULL else src
        begin, end = part_begin(blocks.total, panels.parts, part), part_begin(blocks.total, panels.parts, part + 1)
        if begin < end:
            write_blocks(&blocks, begin, end)
    if panels.store_mode == TILECORE_PAST_CACHES:
        kernels.stream_end()
    free(scratch)


cdef inline Py_ssize_t part_begin(Py_ssize_t total, Py_ssize_t parts, Py_ssize_t part) noexcept nogil:
    """The first block of a part, if `total` blocks are cut into `parts` of nearly equal size."""
    return part * (total // parts) + min(part, total % parts)


cdef void find_panel(const Panels *panels, Py_ssize_t number, Py_ssize_t *count, char **dst,
                     const char **src) noexcept nogil:
    """Set `count` to the panel's steps (the last panel along a loop is shorter); move `dst` and `src` to its start."""
    cdef const Loop *loop
    cdef Py_ssize_t panels_along, first
    cdef int i, k
    for i in range(1, panels.nest.n):
        count[i] = panels.count[i]
    for k in range(panels.n):
        i = panels.level[k]
        loop = &panels.nest.loop[i]
        panels_along = (loop.count + count[i] - 1) // count[i]
        first = number % panels_along * count[i]
        number //= panels_along
        count[i] = min(count[i], loop.count - first)
        dst[0] += first * loop.dst
        src[0] += first * loop.src


cdef void pack_panel(const Panels *panels, const Py_ssize_t *count, char *dst, const char *src,
                     char *cells) noexcept nogil:
    """Pack a panel of `count` steps to `dst`: scratch, or the output if it is direct."""
    cdef LoopIter others[MAX_LOOPS]
    cdef Py_ssize_t steps[MAX_LOOPS]
    cdef const Loop *loop = &panels.packing.loop[0]
    cdef const Loop *inner = &loop[panels.inner]
    cdef const Loop *across = &loop[panels.across]
    cdef Py_ssize_t rows, columns, itemsize = panels.itemsize, dst_pitch, src_pitch
    cdef int k, n = 0
    for k in range(1, panels.packing.n + 1):
        steps[k] = 1
    for k in range(panels.n):
        steps[panels.merged[k]] *= count[panels.level[k]]
    for k in range(1, panels.packing.n):
        if k != panels.inner and k != panels.across:
            others[n] = LoopIter(steps[k], 0, loop[k].src, loop[k].dst)
            n += 1
    rows, columns = steps[panels.inner], steps[panels.across]
    src_pitch, dst_pitch = across.src, across.dst
    if panels.packer == TRANSPOSE and src_pitch < 0:  # start at the other end
        dst += (columns - 1) * dst_pitch
        src += (columns - 1) * src_pitch
        dst_pitch = -dst_pitch
    while True:
        if panels.packer == TRANSPOSE:
            kernels.transpose(dst, dst_pitch, src, inner.src, rows, columns, itemsize, panels.store_mode, cells)
        elif panels.packer == DEINTERLEAVE:
            kernels.deinterleave(&panels.shuffles, dst, dst_pitch, src, src_pitch,
                                 1 if panels.inner > 1 else columns, rows, panels.store_mode == TILECORE_PAST_CACHES)
        else:
            tilecore_gather(dst, dst_pitch, inner.dst, src, src_pitch, inner.src, columns, rows, itemsize)
        if not next_step(others, n, &dst, &src):
            return


cdef void panel_nest_init(const Panels *panels, const Py_ssize_t *count, bint is_packed, Nest *nest) noexcept nogil:
    """Fill `nest` with the loops that write a panel's output, from the packed panel or from the source."""
    cdef const Loop *loop
    cdef int i
    nest_begin(nest, panels.itemsize)
    for i in range(1, panels.nest.n):
        loop = &panels.nest.loop[i]
        nest_push(nest, count[i], panels.step[i] if is_packed else loop.src, loop.dst)
