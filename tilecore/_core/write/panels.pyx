"""A source that is not contiguous along the output's inner loops -> contiguous panels of it.

A transposed, reversed or strided source would be gathered item by item, again for each copy. So it is packed first:
kernels copy a *panel*, a box of the source that fits the cache, into the order of the output (packing.pyx). Then the
panel is tiled as any contiguous source is, by a nest and blocks of its own. Nest and blocks are chosen anew for each
panel, because the last panels of a loop are smaller. If nothing repeats, panels are packed directly into the output.

    nest of a transposed (1024, 1024) float32 tiled (2, 2):
                            run 4, 1024 x (4096, 4), 2 x (0, 4096), 1024 x (4, 8192), 2 x (0, 8388608)
    panel of 128 x 128:     packed 128 x (4096, 4), 128 x (4, 512), in scratch
    its nest:               run 512, 2 x (0, 4096), 128 x (512, 8192), 2 x (0, 8388608)

A panel covers whole cache lines, along the source and along the output. Loops that repeat are whole in each panel. A
loop that packs may join several loops of the nest, and a panel cuts one of these: it has all steps of those inside, and
one step of those outside.

Panels are numbered, as blocks are, and so are the parts of each panel's output. Nothing here can fail.
"""

from libc.stdlib cimport free, malloc

from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, first_moving, nest_begin, nest_push
from tilecore._core.strided_arrays cimport magnitude
from tilecore._core.write.blocks cimport Blocks, choose_blocks, write_blocks
from tilecore._core.write.kernels cimport TILECORE_BY_TILES, TILECORE_CELL_BYTES, TILECORE_PAST_CACHES
from tilecore._core.write.packing cimport DEINTERLEAVE, GATHER, TRANSPOSE, Link, PackedLoop, choose_packer, pack
from tilecore._core.write.processor cimport kernels


cdef enum:
    # Below both MIN_ITEMS and MIN_GATHERED_ROWS, items are gathered as they are written: choosing panels takes longer.
    MIN_ITEMS = 4096
    MIN_GATHERED_ROWS = 128
    MIN_DIRECT_ITEMS = 512
    PANEL_BYTES = 65536     # of a panel, at least
    # A panel has about this many bytes along the source and along the output: enough for the processor to read ahead,
    # and for stores that bypass the cache. SIDE_BYTES**2 / itemsize bytes fit the second-level cache: see choose_sides.
    SIDE_BYTES = 512
    # Whole rows of the output repeat faster than parts. For whole rows, a panel may be this short along the source.
    MIN_SIDE_BYTES = 128
    # A panel that is packed directly into the output. If stores bypass the caches, it is wide for prefetching, and long
    # to amortise the cache lines that it shares with other panels.
    DIRECT_BYTES = 262144
    STREAMED_SIDE_BYTES = 2048
    STREAMED_BYTES = 1 << 20
    # Rows of the output that lie whole pages apart map to the same few sets of each cache. From this size on the caches
    # could not hold them, so their stores bypass the caches.
    ALIASED_BYTES = 1 << 22
    CACHED_BYTES = 1 << 20  # an output that may fit the second-level cache together with its source
    MIN_STREAMED_TRANSPOSED = 512       # rows of this many bytes or more may bypass the caches
    MIN_STREAMED_DEINTERLEAVED = 2048   # likewise
    PART_BYTES = 1 << 20    # of a part, about; or eight panels: each thread that takes a part packs the panel again


cdef bint may_pack(const Nest *nest) noexcept nogil:
    """Whether a packer takes items of this size, and those of the innermost moving loop do not adjoin in the source.

    True also for plain rows with gaps between them, even if packing these does not pay.
    """
    cdef Py_ssize_t itemsize = nest.loop[0].count
    cdef int first = first_moving(nest)
    return itemsize <= 16 and not itemsize & (itemsize - 1) and first < nest.n and nest.loop[first].src_step != itemsize


cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, bint stream,
                        bint prefaulted) noexcept nogil:
    """Choose the panels and the packer; False if the source needs none."""
    cdef Py_ssize_t size, copies
    cdef int i
    if not may_pack(nest) or not packing_pays(nest, &size, &copies):
        return False
    panels.nest, panels.dst, panels.src = nest, dst, src
    choose_packer(&panels.packing, nest, stream)
    choose_store(panels, size, stream, prefaulted)
    choose_sides(panels)
    place_loops(panels)
    panels.parts = copies * panels.nbytes // max(PART_BYTES, 8 * panels.nbytes) + 1
    panels.total = panels.parts
    for i in range(1, nest.n):
        panels.total *= divide_up(nest.loop[i].count, steps_in_panel(panels, i))
    return True


cdef bint packing_pays(const Nest *nest, Py_ssize_t *size, Py_ssize_t *copies) noexcept nogil:
    """Set `size`, the bytes of the source, and `copies`, how often each is written. Return whether packing pays."""
    cdef const Loop *top = &nest.loop[nest.n - 1]
    cdef Py_ssize_t items = 1, rows
    cdef int k
    copies[0] = 1
    for k in range(1, nest.n):
        if nest.loop[k].src_step == 0:
            copies[0] *= nest.loop[k].count
        else:
            items *= nest.loop[k].count
    size[0] = items * nest.loop[0].count
    if copies[0] == 1:
        # Strided to strided does not pay.
        return nest.loop[1].dst_step == nest.loop[0].count and items >= MIN_DIRECT_ITEMS
    rows = items * copies[0] // nest.loop[first_moving(nest)].count // (top.count if top.src_step == 0 else 1)
    return items * copies[0] >= MIN_ITEMS or rows >= MIN_GATHERED_ROWS  # outermost repeats copy the first


cdef void choose_store(Panels *panels, Py_ssize_t size, bint stream, bint prefaulted) noexcept nogil:
    """Choose where the panels of a source of `size` bytes are packed to, and by which stores."""
    cdef const PackedLoop *loop = &panels.packing.loop[0]
    cdef Py_ssize_t row_bytes = loop[panels.packing.along_row].count * panels.packing.itemsize
    cdef bint transposed = panels.packing.packer == TRANSPOSE
    cdef Py_ssize_t min_streamed = MIN_STREAMED_TRANSPOSED if transposed else MIN_STREAMED_DEINTERLEAVED
    cdef bint as_nest = panels.packing.as_nest
    panels.stream = stream or (as_nest and prefaulted and transposed and size >= ALIASED_BYTES
                               and loop[panels.packing.to_next_row].dst_step % 4096 == 0)
    panels.direct, panels.store_mode = as_nest, TILECORE_BY_TILES
    if as_nest and panels.stream:
        panels.direct = panels.packing.packer != GATHER and row_bytes >= min_streamed
        panels.store_mode = TILECORE_PAST_CACHES if panels.direct else TILECORE_BY_TILES
    elif as_nest and size > CACHED_BYTES:
        panels.store_mode = kernels.large_store_mode
    panels.cell_bytes = 0
    if transposed and (panels.store_mode == TILECORE_PAST_CACHES or loop[1].src_step % 1024 == 0):
        panels.cell_bytes = TILECORE_CELL_BYTES


cdef void choose_sides(Panels *panels) noexcept nogil:
    """Choose the steps of each loop in a panel: first along the source, then along the output, innermost first."""
    cdef Py_ssize_t itemsize = panels.packing.itemsize, side = SIDE_BYTES, left, step
    cdef Py_ssize_t budget = max(PANEL_BYTES, SIDE_BYTES * SIDE_BYTES // itemsize)
    cdef Py_ssize_t row_items = panels.nest.loop[first_moving(panels.nest)].count
    cdef PackedLoop *loop = panels.packing.loop
    cdef int k, n = panels.packing.n, finest = panels.packing.finest
    if panels.store_mode == TILECORE_PAST_CACHES:
        budget, side = STREAMED_BYTES, STREAMED_SIDE_BYTES
    elif panels.direct:
        budget = DIRECT_BYTES
    elif row_items <= budget // MIN_SIDE_BYTES:  # whole rows: row_items * side bytes fit the panel
        side = min(side, budget // row_items)
    left, step = budget // itemsize, magnitude(loop[finest].src_step)
    if (finest < n and step < side  # to deinterleave: unless loop 1 itself runs along the source
            and (panels.packing.packer != DEINTERLEAVE or step < magnitude(loop[1].src_step))):
        left = choose_steps(panels, finest, side // step, left)
    for k in range(1, n):
        if loop[k].in_panel == 1:
            left = choose_steps(panels, k, left, left)
    if left > 1 and loop[finest].in_panel < loop[finest].count:
        left *= loop[finest].in_panel  # what the other loops left over makes the panel longer along the source
        choose_steps(panels, finest, left, left)


cdef void place_loops(Panels *panels) noexcept nogil:
    """Set the size of a panel and, if it is packed to scratch, the step of each loop there."""
    cdef PackedLoop *loop = panels.packing.loop
    cdef int k
    panels.nbytes = panels.packing.itemsize
    for k in range(1, panels.packing.n):
        if k == 2 and loop[1].in_panel < loop[1].count and panels.nbytes % 1024 == 0:
            panels.nbytes += 64  # the steps of loop 2 map to different sets of the first-level cache
        if not panels.direct:
            loop[k].dst_step = panels.nbytes
        panels.nbytes *= loop[k].in_panel


cdef Py_ssize_t choose_steps(Panels *panels, int packed, Py_ssize_t limit, Py_ssize_t left) noexcept nogil:
    """Choose how many steps of a packed loop a panel has, at most `limit`. Return `left` over the steps chosen.

    A loop is cut into panels of nearly equal length, the inner loop into whole cache lines.
    """
    cdef PackedLoop *loop = &panels.packing.loop[packed]
    cdef const Link *link
    cdef Py_ssize_t all_steps, count, panels_along, line = 64 // panels.packing.itemsize
    cdef int i
    loop.in_panel = loop.count
    for i in range(1, panels.nest.n):
        link = &panels.packing.link[i]
        all_steps = panels.nest.loop[i].count
        if link.packed == packed and link.packed_steps <= limit < link.packed_steps * all_steps:  # it is cut here
            panels_along = divide_up(all_steps, limit // link.packed_steps)
            count = divide_up(all_steps, panels_along)
            if count > line and link.packed_steps == 1:
                count = divide_up(count, line) * line
            loop.in_panel = link.packed_steps * count
    return max(left // loop.in_panel, 1)


cdef inline Py_ssize_t divide_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return (a + b - 1) // b


cdef inline Py_ssize_t steps_in_panel(const Panels *panels, int i) noexcept nogil:
    """Return the steps of the nest's loop `i` in a panel; the last panel along the loop may have fewer."""
    cdef const Link *link = &panels.packing.link[i]
    cdef Py_ssize_t count = panels.nest.loop[i].count
    if link.packed == 0:
        return count
    return min(count, max(panels.packing.loop[link.packed].in_panel // link.packed_steps, 1))


cdef void write_panels(void *of_panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the parts numbered first to last - 1."""
    cdef const Panels *panels = <const Panels *>of_panels
    cdef void *scratch = NULL
    cdef char *cells = NULL     # scratch of a transposition that needs it
    cdef char *panel = NULL     # scratch, unless panels are packed into the output
    cdef char *dst
    cdef const char *src
    cdef Nest nest
    cdef Py_ssize_t steps[MAX_LOOPS]
    cdef Py_ssize_t number, in_scratch = -1, nbytes = 0 if panels.direct else panels.nbytes
    if panels.cell_bytes or nbytes:
        scratch = malloc(panels.cell_bytes + nbytes + 64)
    if scratch != NULL:
        panel = <char *>((<size_t>scratch + 63) & ~<size_t>63)
        if panels.cell_bytes:
            cells = panel
            panel += panels.cell_bytes
    for number in range(first, last):
        find_panel(panels, number // panels.parts, panel != NULL, &nest, steps)
        dst = panels.dst + nest.dst_offset
        src = panels.src + nest.src_offset
        if panels.direct:
            pack(&panels.packing, steps, dst, src, panels.store_mode, cells)
            continue
        if panel != NULL and in_scratch != number // panels.parts:
            in_scratch = number // panels.parts
            pack(&panels.packing, steps, panel, src, panels.store_mode, cells)
        tile_part(panels, number % panels.parts, &nest, dst, <const char *>panel if panel != NULL else src)
    if panels.store_mode == TILECORE_PAST_CACHES:
        kernels.stream_end()
    free(scratch)


cdef void find_panel(const Panels *panels, Py_ssize_t number, bint is_packed, Nest *nest,
                     Py_ssize_t *steps) noexcept nogil:
    """Set `steps` of each loop that packs, and the `nest` that writes the panel's output, packed or from the source.

    The nest's offsets are those of the panel's begin.
    """
    cdef const Loop *loop
    cdef const Link *link
    cdef Py_ssize_t count, along, first, step
    cdef int i
    nest_begin(nest, panels.packing.itemsize)
    for i in range(panels.packing.n + 1):
        steps[i] = 1
    for i in range(1, panels.nest.n):
        loop = &panels.nest.loop[i]
        link = &panels.packing.link[i]
        count = steps_in_panel(panels, i)
        along = divide_up(loop.count, count)
        first = number % along * count
        number //= along
        count = min(count, loop.count - first)  # the last panel along the loop is shorter
        steps[link.packed] *= count
        nest.dst_offset += first * loop.dst_step
        nest.src_offset += first * loop.src_step
        step = link.packed_steps * panels.packing.loop[link.packed].dst_step if is_packed else loop.src_step
        nest_push(nest, count, step, loop.dst_step)


cdef void tile_part(const Panels *panels, Py_ssize_t part, const Nest *nest, char *dst, const char *src) noexcept nogil:
    """Write a part of a panel's output, of the blocks of `nest`."""
    cdef Blocks blocks
    cdef Py_ssize_t begin, end
    choose_blocks(&blocks, nest, dst, src, panels.stream, True)
    begin, end = part_begin(blocks.total, panels.parts, part), part_begin(blocks.total, panels.parts, part + 1)
    if begin < end:
        write_blocks(&blocks, begin, end)


cdef inline Py_ssize_t part_begin(Py_ssize_t total, Py_ssize_t parts, Py_ssize_t part) noexcept nogil:
    """The first block of a part, if `total` blocks are cut into `parts` of nearly equal size."""
    return part * (total // parts) + min(part, total % parts)
