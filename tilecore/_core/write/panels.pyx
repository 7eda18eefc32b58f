"""A source that is not contiguous along the output's inner loops -> contiguous panels of it.

A transposed, reversed or strided source would be gathered item by item, again for each copy. So it is packed first:
kernels copy a *panel*, a box of the source that fits the cache, into the order of the output. If nothing repeats,
panels are packed directly into the output. Else a panel is packed to scratch, and then tiled as any contiguous source
is, by a nest and blocks of its own: the last panels of a loop are smaller.

    nest of a transposed (1000, 1000) float32 tiled (2, 2):
                            row 4, 1000 x (4000, 4), 2 x (0, 4000), 1000 x (4, 8000), 2 x (0, 8000000)
    panel of 1000 x 64:     packed 1000 x (4000, 4), 64 x (4, 4000), in scratch
    its nest:               row 4000, 2 x (0, 4000), 64 x (4000, 8000), 2 x (0, 8000000)

A panel covers whole cache lines, along the source and along the output. Loops that repeat are whole in each panel.
Panels are numbered, as blocks are. Nothing here can fail.

A packer takes two of a nest's loops at once. Its inner loop is by default the innermost one of the output:

    transpose       the other loop is contiguous in the source
    deinterleave    the inner loop steps over a few items, forward or backward; or it has two to four steps, and the
                    next loop steps over a few items: interleaved channels
    gather          all other sources: item by item
"""

from libc.stdlib cimport free, malloc

from tilecore._core.plan.nest cimport Loop, first_moving, nest_begin, nest_push, next_step
from tilecore._core.strided_arrays cimport magnitude
from tilecore._core.write.blocks cimport choose_blocks, write_blocks
from tilecore._core.resources.processor cimport (
    TILECORE_BY_TILES, TILECORE_CELL_BYTES, TILECORE_BY_STREAM, TILECORE_ALIAS_BYTES, kernels, packs_items,
    tilecore_gather, tilecore_prepare_deinterleave,
)
from tilecore._core.write.stores cimport ORDINARY, PAST_CACHES, Stores


cdef enum:
    # With fewer items and rows than these, choosing panels takes longer than gathering item by item.
    MIN_ITEMS = 4096
    MIN_GATHERED_ROWS = 128
    MIN_DIRECT_ITEMS = 512
    PANEL_BYTES = 262144    # of a panel, about: from an eighth to a half of the second-level cache are as fast
    SIDE_BYTES = 512        # of a panel along the source, about: enough for the processor to read ahead
    # Whole rows of the output repeat faster than parts. For whole rows, a panel may be this short along the source.
    MIN_SIDE_BYTES = 128
    # A panel that cannot hold whole rows of the output is about a square, SIDE_BYTES along the source, and has at least
    # so many bytes. Each line of the source stays cached until all of its items are read.
    MIN_SQUARE_BYTES = 65536
    LINE_BYTES = 64
    # If stores bypass the caches, a panel is wide for prefetching, and long to amortise the cache lines that it shares.
    STREAMED_SIDE_BYTES = 2048
    STREAMED_BYTES = 1 << 20
    # Of a panel in scratch, if items have 1 or 2 bytes: it holds longer parts of rows, which share fewer lines.
    STREAMED_ROWS_BYTES = 524288
    SECOND_CACHE_BYTES = 1 << 20  # an output that may fit the second-level cache together with its source
    MIN_STREAMED_TRANSPOSED = 512       # rows of this many bytes or more may bypass the caches
    MIN_STREAMED_DEINTERLEAVED = 2048   # likewise
    # Packers
    MAX_STEP_BYTES = 64     # of `deinterleave`: farther apart, each item has a cache line of its own
    MAX_CHANNELS = 4        # that `deinterleave` separates
    MIN_SHUFFLED = 64       # bytes of a loop from which on shuffles pay
    # A transposition is faster than gathering from 16 bytes and this many items on: MIN_COLUMNS along the source, and
    # MIN_ROWS along the output. 32 bytes along the output (a tile) always suffice.
    MIN_COLUMNS = 4
    MIN_ROWS = 10
    MIN_GATHERED_STEPS = 5  # steps of an innermost loop that gathers


# ---------------------------------------------------------------- panels

cdef bint may_pack(const Nest *nest) noexcept nogil:
    """Whether a packer takes items of this size, and those of the innermost moving loop do not adjoin in the source.

    True also for plain rows with gaps between them, even if packing these does not pay.
    """
    cdef Py_ssize_t itemsize = nest.loop[0].count
    cdef int first = first_moving(nest)
    return packs_items(itemsize) and first < nest.n and nest.loop[first].src_step != itemsize


cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, Stores stores) noexcept nogil:
    """Choose the panels of a nest that may be packed; False if packing does not pay."""
    cdef const Loop *top = &nest.loop[nest.n - 1]
    cdef Py_ssize_t items = 1, copies = 1, rows
    cdef int k
    for k in range(1, nest.n):
        if nest.loop[k].src_step == 0:
            copies *= nest.loop[k].count
        else:
            items *= nest.loop[k].count
    panels.nest, panels.dst, panels.src, panels.stores = nest, dst, src, stores
    panels.direct = copies == 1
    if panels.direct:
        if nest.loop[1].dst_step != nest.loop[0].count or items < MIN_DIRECT_ITEMS:
            return False  # packing to items that lie apart in the output does not pay
        choose_packer(&panels.packing, nest)
        choose_destination(panels, items * nest.loop[0].count)
    else:  # outermost repeats copy the first
        rows = items * copies // nest.loop[first_moving(nest)].count // (top.count if top.src_step == 0 else 1)
        if items * copies < MIN_ITEMS and rows < MIN_GATHERED_ROWS:
            return False
    choose_sides(panels)
    return True


cdef void choose_destination(Panels *panels, Py_ssize_t size) noexcept nogil:
    """Choose where a source of `size` bytes is packed to, if nothing repeats, and how `transpose` stores it."""
    cdef const Loop *loop = &panels.packing.loop[0]
    cdef Py_ssize_t row_bytes = loop[panels.packing.along_row].count * panels.packing.itemsize
    cdef bint transposed = panels.packing.packer == TRANSPOSE
    panels.store_mode = kernels.large_store_mode if size > SECOND_CACHE_BYTES else TILECORE_BY_TILES
    if panels.stores == PAST_CACHES:
        panels.store_mode = TILECORE_BY_STREAM
        panels.direct = panels.packing.packer != GATHER and row_bytes >= (
            MIN_STREAMED_TRANSPOSED if transposed else MIN_STREAMED_DEINTERLEAVED)


cdef void choose_sides(Panels *panels) noexcept nogil:
    """Choose the steps of each loop in a panel, innermost first, with some reserved for the loop along the source.

        budget              65536 items of the example above; 65 of them, 262 bytes, are reserved along the source
        along the output    65536 / 65 allows 1008 steps: all 1000
        along the source    65536 / 1000 allows 65 steps: 1000 in 16 panels are 63 each, and whole cache lines 64
    """
    cdef const Nest *nest = panels.nest
    cdef Py_ssize_t itemsize = nest.loop[0].count, side = SIDE_BYTES, budget = PANEL_BYTES, left, step, reserved = 1
    cdef int k, finest = first_moving(nest)  # the loop of the smallest steps in the source
    cdef const Loop *innermost = &nest.loop[finest]
    for k in range(finest + 1, nest.n):
        if nest.loop[k].src_step != 0 and magnitude(nest.loop[k].src_step) < magnitude(nest.loop[finest].src_step):
            finest = k
    if panels.stores == PAST_CACHES and itemsize <= 2:
        budget = STREAMED_ROWS_BYTES
    if panels.direct:
        if panels.store_mode == TILECORE_BY_STREAM:
            budget, side = STREAMED_BYTES, STREAMED_SIDE_BYTES
    elif innermost.src_step % TILECORE_ALIAS_BYTES == 0 or innermost.count > budget // MIN_SIDE_BYTES:
        budget = max(SIDE_BYTES * SIDE_BYTES // itemsize, MIN_SQUARE_BYTES)
    else:
        side = min(side, budget // innermost.count)
    left, step = budget // itemsize, magnitude(nest.loop[finest].src_step)
    if step < side:
        reserved = min(side // step, nest.loop[finest].count)
    for k in range(1, nest.n):
        if nest.loop[k].src_step == 0:
            panels.steps[k] = nest.loop[k].count
            continue
        if k == finest:
            reserved = 1
        left = choose_steps(panels, k, max(left // reserved, 1), left)
    panels.nbytes, panels.total = itemsize, 1
    for k in range(1, nest.n):
        panels.total *= divide_up(nest.loop[k].count, panels.steps[k])
        if nest.loop[k].src_step != 0:
            panels.nbytes *= panels.steps[k]


cdef Py_ssize_t choose_steps(Panels *panels, int k, Py_ssize_t limit, Py_ssize_t left) noexcept nogil:
    """Choose at most `limit` steps of a loop: panels of nearly equal length, the inner loop's of whole cache lines.

    Return `left` over the steps chosen.
    """
    cdef Py_ssize_t count = panels.nest.loop[k].count, steps = count, line = LINE_BYTES // panels.nest.loop[0].count
    if limit < count:
        steps = divide_up(count, divide_up(count, limit))
        if steps > line:
            steps = divide_up(steps, line) * line
    panels.steps[k] = steps
    return max(left // steps, 1)


cdef inline Py_ssize_t divide_up(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    return (a + b - 1) // b


cdef void *new_scratch(const Panels *panels) noexcept nogil:
    """Memory for what packs a panel, cells of a transposition, and a packed panel; NULL: there is none, or no need."""
    if (panels.direct and panels.store_mode != TILECORE_BY_STREAM
            and panels.packing.loop[1].src_step % TILECORE_ALIAS_BYTES != 0):
        return NULL
    return malloc(sizeof(Packing) + TILECORE_CELL_BYTES + LINE_BYTES
                  + (0 if panels.direct else panels.nbytes + panels.nbytes // (TILECORE_ALIAS_BYTES // LINE_BYTES)))


cdef void write_panels(void *of_panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Write the panels numbered first to last - 1."""
    cdef const Panels *panels = <const Panels *>of_panels
    cdef void *scratch = new_scratch(panels)
    cdef Blocks blocks
    cdef Py_ssize_t number
    for number in range(first, last):
        pack_panel(panels, number, scratch, &blocks)
        if not panels.direct:
            write_blocks(&blocks, 0, blocks.total)
    if panels.direct and panels.store_mode == TILECORE_BY_STREAM:
        kernels.stream_end()
    free(scratch)


cdef void pack_panel(const Panels *panels, Py_ssize_t number, void *scratch, Blocks *blocks) noexcept nogil:
    """Pack a panel into the output; or to `scratch`, and choose the `blocks` that tile it.

    Without scratch, the blocks gather the items, again for each copy.
    """
    cdef char *cells = <char *>((<size_t>scratch + sizeof(Packing) + LINE_BYTES - 1) & ~<size_t>(LINE_BYTES - 1))
    cdef char *dst = panels.dst
    cdef const char *src = panels.src
    cdef Nest source, rest      # the loops that pack the panel to scratch, and those that tile it
    cdef Py_ssize_t steps[MAX_LOOPS]
    find_panel(panels, number, steps, &dst, &src)
    if panels.direct:
        pack(&panels.packing, steps, dst, src, panels.store_mode, cells if scratch != NULL else NULL)
        return
    split_nest(panels.nest, steps, scratch != NULL, &source, &rest)
    if scratch != NULL:
        pack_nest(&source, cells + TILECORE_CELL_BYTES, src, cells, <Packing *>scratch, blocks)
        src = cells + TILECORE_CELL_BYTES
    choose_blocks(blocks, &rest, dst, src, PAST_CACHES if panels.stores == PAST_CACHES else ORDINARY)


cdef void find_panel(const Panels *panels, Py_ssize_t number, Py_ssize_t *steps, char **dst,
                     const char **src) noexcept nogil:
    """Set the `steps` of each loop in a panel, and move `dst` and `src` to its start."""
    cdef const Loop *loop
    cdef Py_ssize_t along, begin
    cdef int k
    steps[panels.nest.n] = 1
    for k in range(1, panels.nest.n):
        loop = &panels.nest.loop[k]
        along = divide_up(loop.count, panels.steps[k])
        begin = number % along * panels.steps[k]
        number //= along
        steps[k] = min(panels.steps[k], loop.count - begin)
        dst[0] += begin * loop.dst_step
        src[0] += begin * loop.src_step


cdef void split_nest(const Nest *nest, const Py_ssize_t *steps, bint packs, Nest *source, Nest *rest) noexcept nogil:
    """Split `steps` of each loop: `source` packs a panel to contiguous rows, `rest` tiles these rows.

    If rows would lie whole TILECORE_ALIAS_BYTES apart, they lie a cache line farther apart. Unless it `packs`, `rest`
    gathers the items itself.
    """
    cdef Py_ssize_t step = nest.loop[0].count
    cdef const Loop *loop
    cdef int k
    nest_begin(source, step)
    nest_begin(rest, step)
    for k in range(1, nest.n):
        loop = &nest.loop[k]
        if loop.src_step == 0 or not packs:
            nest_push(rest, steps[k], loop.src_step, loop.dst_step)
            continue
        if source.n == 2 and step % TILECORE_ALIAS_BYTES == 0 and not (
                nest.loop[k - 1].src_step != 0 and steps[k - 1] == nest.loop[k - 1].count):
            step += LINE_BYTES
        nest_push(source, steps[k], loop.src_step, step)
        nest_push(rest, steps[k], step, loop.dst_step)
        step *= steps[k]


cdef void pack_nest(const Nest *nest, char *dst, const char *src, char *cells, Packing *packing,
                    Blocks *blocks) noexcept nogil:
    """Pack a whole nest, without repeats, to scratch. `packing` and `blocks`: room, which a small stack may lack."""
    cdef Py_ssize_t steps[MAX_LOOPS]
    cdef int k
    if not may_pack(nest):  # what is left of the loops in this panel is contiguous
        choose_blocks(blocks, nest, dst, src, ORDINARY)
        write_blocks(blocks, 0, blocks.total)
        return
    choose_packer(packing, nest)
    for k in range(nest.n):
        steps[k] = nest.loop[k].count
    steps[nest.n] = 1
    pack(packing, steps, dst, src, TILECORE_BY_TILES, cells)


# ---------------------------------------------------------------- packers

cdef void choose_packer(Packing *packing, const Nest *nest) noexcept nogil:
    """Choose the kernel, and its two loops."""
    cdef Loop *loop = packing.loop
    cdef int k, finest = 2  # the smallest steps in the source, beside the inner loop
    packing.n, packing.itemsize = nest.n, nest.loop[0].count
    for k in range(nest.n):
        loop[k] = nest.loop[k]
    loop[nest.n] = Loop(1, 0, 0)  # from row to row, if there is but one loop
    for k in range(3, nest.n):
        if magnitude(loop[k].src_step) < magnitude(loop[finest].src_step):
            finest = k
    packing.along_row, packing.to_next_row = 1, finest
    if can_transpose(loop[1].count, loop[finest].count, loop[finest].src_step, packing.itemsize):
        packing.packer = TRANSPOSE
    elif kernels.deinterleave != NULL and choose_deinterleave(packing):
        packing.packer = DEINTERLEAVE
    else:
        packing.packer = GATHER
        for k in range(2, packing.n):  # rows run along the output, or along a longer loop if these are short
            if loop[packing.along_row].count < MIN_GATHERED_STEPS and loop[k].count > loop[packing.along_row].count:
                packing.along_row, packing.to_next_row = k, 1


cdef bint can_transpose(Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t step, Py_ssize_t itemsize) noexcept nogil:
    """Whether a transposition is faster than gathering, for `columns` steps of `step` bytes along the source."""
    return (magnitude(step) == itemsize and columns >= max(16 // itemsize, MIN_COLUMNS)
            and rows >= min(max(16 // itemsize, MIN_ROWS), 32 // itemsize))


cdef bint choose_deinterleave(Packing *packing) noexcept nogil:
    """Whether the inner loop, or groups of its few steps, can be deinterleaved. If so, prepare the kernel."""
    cdef const Loop *loop = &packing.loop[0]
    cdef Py_ssize_t itemsize = packing.itemsize, channels = loop[1].count, apart = loop[1].src_step, step
    if channels > MAX_CHANNELS:
        channels, apart, step = 1, 0, loop[1].src_step
        if loop[1].count * itemsize < MIN_SHUFFLED:
            return False
    else:
        step = loop[2].src_step
        if channels * loop[2].count * itemsize < MIN_SHUFFLED or loop[2].dst_step != channels * itemsize:
            return False
    if step != itemsize and (apart % itemsize or magnitude(apart) * (channels - 1) + itemsize > magnitude(step)):
        return False  # channels neither in rows of their own, nor all within one step
    if (step % itemsize or magnitude(step) > MAX_STEP_BYTES
            or not tilecore_prepare_deinterleave(&packing.shuffles, channels, apart, step, itemsize)):
        return False
    if channels > 1:
        packing.along_row, packing.to_next_row = 2, 1
    return True


cdef void pack(const Packing *packing, const Py_ssize_t *steps, char *dst, const char *src, int store_mode,
               char *cells) noexcept nogil:
    """Pack `steps` of each loop to `dst`. `store_mode` and `cells` are those of `transpose`: see kernels.h."""
    cdef Loop others[MAX_LOOPS]
    cdef Py_ssize_t at[MAX_LOOPS]   # the positions in them
    cdef const Loop *loop = &packing.loop[0]
    cdef const Loop *along = &loop[packing.along_row]
    cdef const Loop *rows = &loop[packing.to_next_row]
    cdef Py_ssize_t n_rows = steps[packing.to_next_row], row_items = steps[packing.along_row], dst_pitch = rows.dst_step
    cdef int k, n = 0
    for k in range(1, packing.n):
        if k != packing.along_row and k != packing.to_next_row:
            others[n] = Loop(steps[k], loop[k].src_step, loop[k].dst_step)
            at[n] = 0
            n += 1
    if packing.packer == TRANSPOSE and rows.src_step < 0:  # start at the other end
        dst += (n_rows - 1) * dst_pitch
        src += (n_rows - 1) * rows.src_step
        dst_pitch = -dst_pitch
    while True:
        if packing.packer == TRANSPOSE:
            kernels.transpose(dst, dst_pitch, src, along.src_step, row_items, n_rows, packing.itemsize, store_mode,
                              cells)
        elif packing.packer == DEINTERLEAVE:
            kernels.deinterleave(&packing.shuffles, dst, dst_pitch, src, rows.src_step,
                                 1 if packing.along_row > 1 else n_rows, row_items, store_mode == TILECORE_BY_STREAM)
        else:
            tilecore_gather(dst, dst_pitch, along.dst_step, src, rows.src_step, along.src_step, n_rows, row_items,
                            packing.itemsize)
        if not next_step(others, at, n, &dst, &src):
            return
