# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Blocks of memory: new ones from the system, and idle ones that are handed out again.

    take_block() -> block in use -> give_back_block() -> idle, on a shelf -> take_block() -> in use again
                                          `-> over a limit, or idle for long: back to the system

Blocks have fixed sizes, eight for each power of two. Idle blocks of one size are on a list, called a shelf: the newest
block is reused first, and the oldest returns to the system first. Each size has two shelves:

    kept    blocks below TILECORE_KEPT_BELOW bytes. Giving one back takes no system call. Page attributes that its last
            owner set (mprotect, madvise) stay, as with malloc's blocks of such sizes. The system cannot take these
            pages back, so their total has a limit of its own.
    lent    larger blocks, and kept ones beyond that limit. Their page attributes are reset, and the system may take
            the pages when it needs memory (MADV_FREE). A block that cannot be reset returns to the system.

Blocks that were idle for TILECORE_IDLE_MILLISECONDS return to the system when the next block is given back, so that
memory does not stay after a burst.

Threads share the shelves, under a lock that is held briefly and never during a system call. Nothing here needs Python:
an array may die in any thread, or at exit. A forked child shares its parent's pages until one of the two writes, and
then the system copies them. So the child starts with no idle block, and returns those it inherits.
"""


from libc.limits cimport LLONG_MAX


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_KEPT_BELOW, TILECORE_KEPT_BYTES
    Py_ssize_t TILECORE_LEAST_RECYCLED_BYTES
    long long TILECORE_IDLE_MILLISECONDS


cdef extern from "kernels/pages.h" nogil:
    Py_ssize_t TILECORE_OWN_BLOCK_BYTES
    char *tilecore_block_new(Py_ssize_t bytes, Py_ssize_t wanted)
    void tilecore_block_populate(char *block, Py_ssize_t wanted)
    void tilecore_block_free(char *block, Py_ssize_t bytes)
    void tilecore_block_drop(char *block, Py_ssize_t bytes)
    int tilecore_block_idle(char *block, Py_ssize_t bytes)
    void tilecore_poison(char *at, Py_ssize_t bytes)
    void tilecore_unpoison(char *at, Py_ssize_t bytes)
    bint tilecore_addresses_limited()
    enum: TILECORE_BLOCK_HEAD


cdef extern from "kernels/locks.h" nogil:
    ctypedef struct tilecore_lock:
        pass
    tilecore_lock TILECORE_LOCK_INIT
    Py_ssize_t tilecore_atomic_load(const Py_ssize_t *counter)
    void tilecore_atomic_store(Py_ssize_t *counter, Py_ssize_t n)
    void tilecore_acquire(tilecore_lock *lock)
    void tilecore_release(tilecore_lock *lock)
    long long tilecore_milliseconds()
    int tilecore_at_fork(void (*before)() noexcept nogil, void (*parent)() noexcept nogil,
                         void (*child)() noexcept nogil)


cdef extern from *:
    """
    static tilecore_lock tilecore_idle_lock = TILECORE_LOCK_INIT;
    """
    tilecore_lock tilecore_idle_lock


cdef enum:
    SLAB_BYTES = 4 << 21
    SIZES = 8 * 62 + 1  # eight for each power of two up to 2**61, and one more: take_block also looks at the next size


cdef struct Slab:           # describes a block in which smaller ones lie
    Py_ssize_t used         # bytes that have been handed out, from the start on
    Py_ssize_t blocks       # that have not been freed, in use or idle


cdef struct Block:          # describes a block, in the TILECORE_BLOCK_HEAD bytes before it
    Block *older            # on the same shelf
    Block *newer
    char *slab              # in which it lies, or NULL
    Py_ssize_t bytes        # of the block itself
    Py_ssize_t touched      # the most bytes in use so far: the rest has no pages yet, and does not count
    Py_ssize_t generation   # of the process that it belongs to
    long long since         # when it became idle


cdef struct Shelf:
    Block *newest
    Block *oldest


cdef struct Shelves:
    Shelf size[SIZES]
    Py_ssize_t bytes


# Under the lock.
cdef Shelves kept, lent
cdef char *slab                         # that new blocks are cut from, or NULL
cdef long long looked                   # when the age of idle blocks was last checked

cdef Py_ssize_t limit                   # of all idle bytes: one word, so other threads read the old one or the new one
cdef Py_ssize_t generation              # counts the forks that led to this process


cdef Block *block_of(const char *data) noexcept nogil:
    return <Block *>(data - TILECORE_BLOCK_HEAD)


cdef char *data_of(Block *block) noexcept nogil:
    return <char *>block + TILECORE_BLOCK_HEAD


cdef Py_ssize_t block_bytes(const char *data) noexcept nogil:
    return block_of(data).bytes


cdef bint resize_block(char *data, Py_ssize_t bytes) noexcept nogil:
    """Use the block for `bytes` bytes from now on; False if it is too small, or more than twice as large."""
    cdef Block *block = block_of(data)
    if not block.bytes // 2 <= bytes <= block.bytes:
        return False
    block.touched = max(block.touched, bytes)
    return True


cdef int choose_size(Py_ssize_t *bytes) noexcept nogil:
    """Round up to the next size of a block; return its number."""
    cdef int power = 3
    bytes[0] = max(bytes[0], TILECORE_LEAST_RECYCLED_BYTES)
    while bytes[0] > <Py_ssize_t>16 << power - 3:
        power += 1
    cdef Py_ssize_t step = <Py_ssize_t>1 << power - 3
    bytes[0] = (bytes[0] + step - 1) & ~(step - 1)
    return 8 * power + <int>((bytes[0] - 1) >> power - 3)


# ---------------------------------------------------------------- shelves, under the lock

cdef void put(Shelves *shelves, Block *block) noexcept nogil:
    cdef Py_ssize_t bytes = block.bytes
    cdef int number = choose_size(&bytes)
    cdef Shelf *shelf = &shelves.size[number]
    block.older, block.newer = shelf.newest, NULL
    if shelf.newest != NULL:
        shelf.newest.newer = block
    else:
        shelf.oldest = block
    shelf.newest = block
    shelves.bytes += block.touched


cdef Block *pop(Shelves *shelves, Shelf *shelf, Block *block) noexcept nogil:
    """Take the block, the shelf's newest or oldest, off its shelf."""
    if block.newer != NULL:
        block.newer.older = block.older
    else:
        shelf.newest = block.older
    if block.older != NULL:
        block.older.newer = block.newer
    else:
        shelf.oldest = block.newer
    shelves.bytes -= block.touched
    return block


cdef Block *pop_newest(Shelves *shelves, int size) noexcept nogil:
    cdef Shelf *shelf = &shelves.size[size]
    return pop(shelves, shelf, shelf.newest) if shelf.newest != NULL else NULL


cdef Block *pop_oldest(Shelves *shelves, long long before) noexcept nogil:
    """The block that has been idle the longest, of any size, if it became idle at `before` or earlier."""
    cdef Shelf *found = NULL
    cdef int size
    for size in range(SIZES):
        if shelves.size[size].oldest != NULL and shelves.size[size].oldest.since <= before:
            found, before = &shelves.size[size], shelves.size[size].oldest.since
    return pop(shelves, found, found.oldest) if found != NULL else NULL


# ---------------------------------------------------------------- blocks

cdef Slab *slab_of(char *data) noexcept nogil:
    return <Slab *>(data - TILECORE_BLOCK_HEAD)


cdef char *new_block(Py_ssize_t wanted) noexcept nogil:
    """A block of at least `wanted` bytes from the system; NULL if there is no memory."""
    cdef Py_ssize_t bytes = wanted
    cdef char *data = NULL
    cdef char *within = NULL
    if wanted > PY_SSIZE_T_MAX // 4:
        return NULL
    choose_size(&bytes)
    if bytes >= TILECORE_OWN_BLOCK_BYTES:
        data = tilecore_block_new(bytes, wanted)
    else:
        data = cut_block(bytes, &within)
        if data != NULL:
            tilecore_block_populate(data, wanted)
    if data != NULL:
        block_of(data)[0] = Block(NULL, NULL, within, bytes, wanted, generation, 0)
    return data


cdef char *cut_block(Py_ssize_t bytes, char **within) noexcept nogil:
    """A block from the slab, or from a new one."""
    global slab
    cdef char *data
    cdef char *other
    cdef Slab *notes
    while True:
        tilecore_acquire(&tilecore_idle_lock)
        if slab != NULL and slab_of(slab).used + TILECORE_BLOCK_HEAD + bytes <= SLAB_BYTES:
            notes = slab_of(slab)
            data = slab + notes.used + TILECORE_BLOCK_HEAD
            notes.used += TILECORE_BLOCK_HEAD + bytes
            notes.blocks += 1
            within[0] = slab
            tilecore_release(&tilecore_idle_lock)
            return data
        tilecore_release(&tilecore_idle_lock)
        data = tilecore_block_new(SLAB_BYTES, 0)
        if data == NULL:
            return NULL
        slab_of(data)[0] = Slab(0, 0)
        tilecore_acquire(&tilecore_idle_lock)
        other = slab
        slab = data
        if other != NULL and slab_of(other).blocks:
            other = NULL
        tilecore_release(&tilecore_idle_lock)
        if other != NULL:
            tilecore_block_free(other, SLAB_BYTES)


cdef void free_block(Block *block) noexcept nogil:
    """Return the block to the system. If it was the last of its slab, return the slab too."""
    cdef char *within = block.slab
    cdef bint last
    tilecore_unpoison(data_of(block), block.bytes)
    if within == NULL:
        tilecore_block_free(data_of(block), block.bytes)
        return
    tilecore_block_drop(data_of(block), block.bytes)
    tilecore_acquire(&tilecore_idle_lock)
    slab_of(within).blocks -= 1
    last = slab_of(within).blocks == 0
    if last and within == slab:
        slab_of(within).used = 0
        last = False
    tilecore_release(&tilecore_idle_lock)
    if last:
        tilecore_block_free(within, SLAB_BYTES)


cdef char *take_block(Py_ssize_t bytes, bint *warm) noexcept nogil:
    """A block of at least `bytes`, idle or new; NULL if there is no memory, or if addresses are limited.

    `warm` is set to whether its pages are in memory.
    """
    cdef Block *block = NULL
    cdef Py_ssize_t whole = bytes
    cdef char *data
    cdef int size, k
    if bytes > PY_SSIZE_T_MAX // 4:
        return NULL
    size = choose_size(&whole)
    tilecore_acquire(&tilecore_idle_lock)
    for k in range(size, size + 2):
        block = pop_newest(&kept, k)
        if block == NULL:
            block = pop_newest(&lent, k)
        if block != NULL:
            break
    tilecore_release(&tilecore_idle_lock)
    # Idle blocks count towards a limit of addresses. The check takes longer than all else, so it is not made for each
    # small block.
    if (block == NULL or block.bytes >= TILECORE_KEPT_BELOW) and tilecore_addresses_limited():
        if block != NULL:
            free_block(block)
        trim(0)
        return NULL
    warm[0] = block != NULL
    if block != NULL:
        block.touched = max(block.touched, bytes)
        tilecore_unpoison(data_of(block), block.bytes)
        return data_of(block)
    data = new_block(bytes)
    if data == NULL:
        trim(0)
        data = new_block(bytes)
    return data


cdef void give_back_block(char *data) noexcept nogil:
    cdef Block *block = block_of(data)
    cdef bint keep = block.bytes < TILECORE_KEPT_BELOW
    cdef long long now
    if (block.touched > tilecore_atomic_load(&limit) or block.generation != generation
            or not keep and (tilecore_addresses_limited() or tilecore_block_idle(data, block.bytes) < 0)):
        free_block(block)
        return
    tilecore_poison(data, block.bytes)
    now = tilecore_milliseconds()
    block.since = now
    tilecore_acquire(&tilecore_idle_lock)
    put(&kept if keep else &lent, block)
    tilecore_release(&tilecore_idle_lock)
    tidy(now)   # another thread may have taken or freed the block by now


cdef void tidy(long long now) noexcept nogil:
    """Lend kept blocks beyond their limit. Return blocks beyond the whole limit, or idle for too long. Oldest first."""
    global looked
    cdef Block *block
    cdef Py_ssize_t most
    cdef bint lend
    while True:
        tilecore_acquire(&tilecore_idle_lock)
        block = NULL
        most = tilecore_atomic_load(&limit)     # under the lock, because another thread may have lowered it
        lend = kept.bytes > min(TILECORE_KEPT_BYTES, most // 4)
        if lend:
            block = pop_oldest(&kept, now)
        elif kept.bytes + lent.bytes > most:
            block = pop_oldest(&lent if lent.bytes else &kept, now)
        elif now - looked > TILECORE_IDLE_MILLISECONDS // 8:
            block = pop_oldest(&kept, now - TILECORE_IDLE_MILLISECONDS)
            if block == NULL:
                block = pop_oldest(&lent, now - TILECORE_IDLE_MILLISECONDS)
            if block == NULL:
                looked = now
        tilecore_release(&tilecore_idle_lock)
        if block == NULL:
            return
        if lend and not tilecore_addresses_limited() and tilecore_block_idle(data_of(block), block.bytes) == 0:
            tilecore_acquire(&tilecore_idle_lock)
            put(&lent, block)
            tilecore_release(&tilecore_idle_lock)
        else:
            free_block(block)


cdef void trim(Py_ssize_t most) noexcept nogil:
    """Return idle blocks to the system, the oldest first, until at most `most` bytes are left."""
    cdef Block *block = NULL
    while True:
        tilecore_acquire(&tilecore_idle_lock)
        if kept.bytes + lent.bytes > most:
            block = pop_oldest(&lent if lent.bytes else &kept, LLONG_MAX)
        else:
            block = NULL
        tilecore_release(&tilecore_idle_lock)
        if block == NULL:
            return
        free_block(block)


cdef Py_ssize_t count_idle() noexcept nogil:
    cdef Py_ssize_t bytes
    tilecore_acquire(&tilecore_idle_lock)
    bytes = kept.bytes + lent.bytes
    tilecore_release(&tilecore_idle_lock)
    return bytes


cdef Py_ssize_t idle_limit() noexcept nogil:
    return tilecore_atomic_load(&limit)


cdef void set_idle_limit(Py_ssize_t most) noexcept nogil:
    tilecore_atomic_store(&limit, most)
    trim(most)


# ---------------------------------------------------------------- fork

cdef void before_fork() noexcept nogil:
    tilecore_acquire(&tilecore_idle_lock)


cdef void after_fork_in_parent() noexcept nogil:
    tilecore_release(&tilecore_idle_lock)


cdef void after_fork_in_child() noexcept nogil:
    global generation, slab
    generation += 1
    slab = NULL
    tilecore_release(&tilecore_idle_lock)
    trim(0)


if tilecore_at_fork(before_fork, after_fork_in_parent, after_fork_in_child):
    raise ImportError("tilecore: no memory to register what happens at fork()")
