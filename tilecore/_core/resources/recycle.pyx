# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Memory of large results, written again by later ones.

The system clears a page before a process first sees it, and for a large result that takes longer than tiling. So
the memory of a large result is kept when its array dies. The system may take idle pages whenever it needs some;
until then they are there at once, and a later result of a similar size is written into them.

    tile() -> array -> last reference dies -> give_back() -> idle -> take() -> another array
                                                   `-> over the limit: the oldest idle block goes

The array owns its memory as every NumPy array does, through a memory handler of NumPy's (NEP 49). NumPy calls
`give_back` when the array dies, and it lives while a view, a buffer, or a DLPack capsule holds it. Nothing else
learns of a block, so nothing can see it when it is written again. What its last owner asked the system for, to leave
it out of a forked child or to make it read-only, is undone first; a block that cannot be made clean goes. Giving back
needs no Python: a result may die in any thread, or at exit. The handler is set in the array itself. The context's
handler is never changed: to set that back may fail for want of memory, and then every array of the program would
come from here.

Threads share the list of idle blocks, under a lock that is held for a walk along a few blocks and never during a
system call. The limit is a word, read and written at once: a reader sees the old or the new one, and both are right.

A forked child shares its parent's pages until one of the two writes, and then the system copies them. So the child
starts with no idle block, and returns those it inherits.
"""

import os

from numpy.lib import tracemalloc_domain as _tracemalloc_domain

from tilecore._core.resources.limits import bytes_from_environment, physical_memory, read_bytes

cimport numpy as cnp
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.string cimport memcpy, memset, strcpy

from tilecore._core.numpy_api cimport (
    NPY_ARRAY_CARRAY, NPY_ARRAY_OWNDATA, PyArrayObject_fields, PyDataMem_DefaultHandler, PyDataMem_GetHandler,
    PyDataMem_Handler, PyDataType_REFCHK, try_array,
)
from tilecore._core.resources.limits cimport in_multiprocessing_child

cnp.import_array()


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    int PyTraceMalloc_Track(unsigned int domain, size_t at, size_t bytes)


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_RECYCLE_SLACK


cdef extern from "kernels/pages.h" nogil:
    Py_ssize_t TILECORE_HUGE_BYTES
    Py_ssize_t tilecore_page_bytes()
    char *tilecore_block_new(Py_ssize_t bytes)
    void tilecore_pages_free(void *at, Py_ssize_t bytes)
    void tilecore_block_free(char *block, Py_ssize_t bytes)
    int tilecore_block_idle(char *block, Py_ssize_t bytes)
    bint tilecore_addresses_limited()


cdef extern from "kernels/locks.h" nogil:
    ctypedef struct tilecore_lock:
        pass
    tilecore_lock TILECORE_LOCK_INIT
    Py_ssize_t tilecore_atomic_load(const Py_ssize_t *counter)
    void tilecore_atomic_store(Py_ssize_t *counter, Py_ssize_t n)
    void tilecore_acquire(tilecore_lock *lock)
    void tilecore_release(tilecore_lock *lock)
    int tilecore_at_fork(void (*before)() noexcept nogil, void (*parent)() noexcept nogil,
                         void (*child)() noexcept nogil)


cdef extern from *:
    """
    static tilecore_lock tilecore_idle_lock = TILECORE_LOCK_INIT;
    """
    tilecore_lock tilecore_idle_lock


# ---------------------------------------------------------------- blocks

cdef struct Block:          # describes a block, in the page before it
    Block *older            # of idle blocks, the one that was given back before this one
    Py_ssize_t bytes        # of the block itself
    Py_ssize_t generation   # of the process that it belongs to
    bint written            # so its pages are there, unless the system has taken them


cdef Block *idle                        # the newest; under the lock, as is its total
cdef Py_ssize_t idle_bytes
cdef Py_ssize_t limit                   # of idle_bytes
cdef Py_ssize_t generation              # counts the forks that led to this process
cdef bint by_environment = "TILECORE_RECYCLE_BYTES" in os.environ
cdef Py_ssize_t chosen = by_environment     # whether the limit was, for this process
cdef Py_ssize_t page = tilecore_page_bytes()
cdef unsigned int trace_domain = _tracemalloc_domain


cdef Block *block_of(void *data) noexcept nogil:
    return <Block *>(<char *>data - page)


cdef char *data_of(Block *block) noexcept nogil:
    return <char *>block + page


cdef void free_all(Block *block) noexcept nogil:
    cdef Block *older
    while block != NULL:
        older = block.older
        tilecore_block_free(data_of(block), block.bytes)
        block = older


cdef void trim(Py_ssize_t most) noexcept nogil:
    """Return the oldest idle blocks to the system, until those that are left take at most `most`."""
    global idle_bytes
    cdef Block **link = &idle
    cdef Block *rest
    tilecore_acquire(&tilecore_idle_lock)
    idle_bytes = 0
    while link[0] != NULL and idle_bytes + link[0].bytes <= most:
        idle_bytes += link[0].bytes
        link = &link[0].older
    rest = link[0]
    link[0] = NULL
    tilecore_release(&tilecore_idle_lock)
    free_all(rest)


cdef char *take_idle(Py_ssize_t bytes) noexcept nogil:
    """The idle block that fits best, or NULL."""
    global idle_bytes
    cdef Block **link = &idle
    cdef Block **best = NULL
    cdef Block *block = NULL
    tilecore_acquire(&tilecore_idle_lock)
    while link[0] != NULL:
        if bytes <= link[0].bytes <= bytes + bytes // TILECORE_RECYCLE_SLACK:
            if best == NULL or link[0].bytes < best[0].bytes:
                best = link
        link = &link[0].older
    if best != NULL:
        block = best[0]
        best[0] = block.older
        idle_bytes -= block.bytes
    tilecore_release(&tilecore_idle_lock)
    return data_of(block) if block != NULL else NULL


cdef Py_ssize_t round_to_huge_pages(Py_ssize_t bytes) noexcept nogil:
    return (bytes + TILECORE_HUGE_BYTES - 1) & ~(TILECORE_HUGE_BYTES - 1)


# ---------------------------------------------------------------- what NumPy calls

cdef void *take(void *context, size_t bytes) noexcept nogil:
    """A block of at least `bytes`, idle or new; NULL where there is no memory."""
    cdef Py_ssize_t whole
    cdef char *data
    if bytes > <size_t>(PY_SSIZE_T_MAX - TILECORE_HUGE_BYTES):
        return NULL
    whole = round_to_huge_pages(bytes)
    data = take_idle(whole)
    if data != NULL:
        return data
    data = tilecore_block_new(whole)
    if data == NULL:
        trim(0)
        data = tilecore_block_new(whole)
    if data != NULL:
        block_of(data)[0] = Block(NULL, whole, generation, False)
    return data


cdef void *take_cleared(void *context, size_t count, size_t bytes) noexcept nogil:
    cdef void *data = NULL
    if bytes == 0 or count <= <size_t>PY_SSIZE_T_MAX // bytes:
        data = take(context, count * bytes)
    if data != NULL:
        memset(data, 0, count * bytes)
    return data


cdef void give_back(void *context, void *data, size_t bytes) noexcept nogil:
    """The array that owned `data` has died."""
    global idle, idle_bytes
    cdef Py_ssize_t most = tilecore_atomic_load(&limit)
    cdef Block *block
    cdef bint over
    if data == NULL:
        return
    block = block_of(data)
    if (block.bytes > most or block.bytes < TILECORE_LEAST_RECYCLED_BYTES or block.generation != generation
            or tilecore_addresses_limited() or tilecore_block_idle(<char *>data, block.bytes) < 0):
        tilecore_block_free(<char *>data, block.bytes)
        return
    block.written = True
    tilecore_acquire(&tilecore_idle_lock)
    block.older = idle
    idle = block
    idle_bytes += block.bytes
    over = idle_bytes > most
    tilecore_release(&tilecore_idle_lock)
    if over:
        trim(most)


cdef void *resize(void *context, void *data, size_t bytes) noexcept nogil:
    """For `ndarray.resize`, the method."""
    cdef Block *block = block_of(data)
    cdef Py_ssize_t whole
    cdef void *other
    if bytes <= <size_t>block.bytes:
        whole = round_to_huge_pages(bytes)
        if whole < block.bytes:
            tilecore_pages_free(<char *>data + whole, block.bytes - whole)
            block.bytes = whole
        return data
    other = take(context, bytes)
    if other != NULL:
        memcpy(other, data, block.bytes)
        give_back(context, data, block.bytes)
    return other


cdef PyDataMem_Handler handler
strcpy(handler.name, "tilecore")
handler.version = 1
handler.allocator.malloc = take
handler.allocator.calloc = take_cleared
handler.allocator.realloc = resize
handler.allocator.free = give_back
cdef object capsule = PyCapsule_New(&handler, "mem_handler", NULL)


cdef bint can_recycle(Py_ssize_t nbytes, cnp.dtype dtype) except -1:
    """Whether memory of ours is for a result of this size."""
    if nbytes > tilecore_atomic_load(&limit) or PyDataType_REFCHK(dtype):
        return False
    if tilecore_addresses_limited():
        trim(0)  # as the limit may be new
        return False
    return limit_holds()


cdef bint limit_holds() except -1:
    """Not the default one in a child of multiprocessing, whose siblings want memory too."""
    return tilecore_atomic_load(&chosen) or not in_multiprocessing_child()


cdef cnp.ndarray make_recycled_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *warm):
    """A new array in memory of ours, or None."""
    cdef PyObject *result
    cdef char *data
    handler_of_context = PyDataMem_GetHandler()
    if <PyObject *>handler_of_context != PyDataMem_DefaultHandler:
        return None  # memory is to come from elsewhere
    data = <char *>take(NULL, nbytes)
    if data == NULL:
        return None
    warm[0] = block_of(data).written
    result = try_array(ndim, shape, dtype, data, NPY_ARRAY_CARRAY)
    if result == NULL:
        give_back(NULL, data, nbytes)
        PyErr_Clear()
        return None
    # As NumPy does with memory that it has asked a handler for.
    Py_INCREF(capsule)
    (<PyArrayObject_fields *>result).mem_handler = <PyObject *>capsule
    PyTraceMalloc_Track(trace_domain, <size_t>data, nbytes)
    array = <cnp.ndarray>result
    Py_DECREF(array)
    cnp.PyArray_ENABLEFLAGS(array, NPY_ARRAY_OWNDATA)
    return array


# ---------------------------------------------------------------- fork

cdef void before_fork() noexcept nogil:
    tilecore_acquire(&tilecore_idle_lock)


cdef void after_fork_in_parent() noexcept nogil:
    tilecore_release(&tilecore_idle_lock)


cdef void after_fork_in_child() noexcept nogil:
    global idle, idle_bytes, generation, chosen
    cdef Block *inherited = idle
    idle, idle_bytes = NULL, 0
    generation += 1
    chosen = by_environment
    tilecore_release(&tilecore_idle_lock)
    free_all(inherited)


# ---------------------------------------------------------------- functions

def recycled_bytes():
    """How much memory is kept idle for later results.

    >>> import numpy, tilecore
    >>> tilecore.release_memory()
    >>> x = tilecore.tile(numpy.zeros((1024, 1024)), (4, 1))    # (4096, 1024): 32 MiB
    >>> del x
    >>> tilecore.recycled_bytes() in (0, 2**25)                 # 0 but on Linux
    True

    The memory of results of 32 MiB and more is kept when they are garbage-collected, and later results of a
    similar size are written into it: the system takes longer to provide new memory than tiling takes. The
    process looks as much larger, but the system may take the memory at any time (``MADV_FREE``). Only Linux
    has this.

    Returns
    -------
    int
        Bytes; at most `get_recycle_limit()`.

    See Also
    --------
    set_recycle_limit, release_memory
    """
    tilecore_acquire(&tilecore_idle_lock)
    bytes = idle_bytes
    tilecore_release(&tilecore_idle_lock)
    return bytes


def get_recycle_limit():
    """The most memory, in bytes, that is kept idle for later results; see `set_recycle_limit`.

    >>> import tilecore
    >>> tilecore.get_recycle_limit() >= 0
    True
    """
    return tilecore_atomic_load(&limit) if limit_holds() and not tilecore_addresses_limited() else 0


def set_recycle_limit(n, /):
    """Keep at most `n` bytes of memory idle for later results.

    >>> import tilecore
    >>> before = tilecore.get_recycle_limit()
    >>> tilecore.set_recycle_limit(0)           # every result's memory goes back at once
    >>> tilecore.set_recycle_limit(before)

    By default the smaller of 1 GiB and 1/16 of the physical memory or the cgroup's limit, or the value of the
    environment variable ``TILECORE_RECYCLE_BYTES``. In a child process of multiprocessing nothing, unless the
    variable is set or the child calls this function.

    Nothing is kept, whatever `n` is, while the process has a limit of addresses or data (``RLIMIT_AS``,
    ``RLIMIT_DATA``; ``ulimit -v``, ``ulimit -d``). Such a limit counts idle memory, and other allocations would
    fail for it. Where it is set later, idle memory is returned with the next large result; `release_memory`
    returns it at once.

    Parameters
    ----------
    n : int or str
        Bytes, 0 or more; or a text with a suffix, as ``"256M"`` or ``"4G"``. Larger results are not kept. Idle
        memory beyond it goes back to the system at once, the oldest first.

    Raises
    ------
    TypeError
        Where `n` is neither an integer nor a text.
    ValueError
        Where `n` is negative, more than fits 64 bits, or a text that is no number of bytes.

    See Also
    --------
    recycled_bytes, release_memory
    """
    cdef Py_ssize_t most = read_bytes("set_recycle_limit", n)
    tilecore_atomic_store(&limit, most)
    tilecore_atomic_store(&chosen, True)
    trim(most)


def release_memory():
    """Return all idle memory to the system; see `recycled_bytes`.

    >>> import tilecore
    >>> tilecore.release_memory()
    >>> tilecore.recycled_bytes()
    0
    """
    trim(0)


limit = bytes_from_environment("TILECORE_RECYCLE_BYTES", min(physical_memory() // 16, 1 << 30))

if tilecore_at_fork(before_fork, after_fork_in_parent, after_fork_in_child):
    raise ImportError("tilecore: no memory to register what happens at fork()")
