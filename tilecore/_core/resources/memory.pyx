# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Allocates results, limits their size, and recycles memory: later results reuse the memory of earlier ones.

The first touch of a page takes 1 to 4 us, and memory that has left the caches takes two to four times as long to write
as memory still in them. While a program makes and drops other arrays, the C library returns memory to the system and
requests it again, in each call. So results of TILECORE_SMALL_BYTES or more lie in memory of our own (arena.c), as far
as the recycle limit and the address space allow.

An array owns this memory as every NumPy array does, through a memory handler (NEP 49). NumPy calls `handler_free` when
it deallocates the array. A view, a buffer or a DLPack capsule keeps the array alive, so nothing reads reused memory.
The handler is set in the array itself, and never in the context: resetting that may fail for lack of memory, and then
all arrays of the program would come from here.
"""

import os

from numpy.lib import tracemalloc_domain as _tracemalloc_domain

from tilecore._core.request.errors import RequestError
from tilecore._core.request.integers import bytes_from_environment, read_bytes
from tilecore._core.resources.machine import physical_memory, read_text
from tilecore._units import with_unit

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset, strcpy

from tilecore._core.atomic cimport tilecore_atomic_load, tilecore_atomic_store
from tilecore._core.config cimport TILECORE_SMALL_BYTES
from tilecore._core.numpy_api cimport (
    NPY_ARRAY_CARRAY, NPY_ARRAY_OWNDATA, NPY_VSTRING, PyArrayObject_fields, PyDataMem_DefaultHandler,
    PyDataMem_GetHandler, PyDataMem_Handler, PyDataType_REFCHK, try_array,
)
from tilecore._core.resources.process_state cimport forks, in_multiprocessing_child

cnp.import_array()


cdef extern from "Python.h":
    int PyTraceMalloc_Track(unsigned int domain, size_t at, size_t bytes)


cdef extern from "runtime/arena.h" nogil:
    char *tilecore_arena_alloc(Py_ssize_t bytes, bint *prefaulted)
    bint tilecore_arena_free(char *data)
    Py_ssize_t tilecore_arena_capacity(char *data)
    void tilecore_arena_trim(Py_ssize_t limit)
    void tilecore_arena_set_limit(Py_ssize_t limit)
    Py_ssize_t tilecore_arena_limit()
    Py_ssize_t tilecore_arena_idle()
    void tilecore_arena_raise_heap()
    int tilecore_arena_start(bint huge)

cdef extern from "runtime/pages.h" nogil:
    bint tilecore_addresses_limited()


cdef enum:
    CHILD_DIVISOR = 8   # a child of multiprocessing keeps 1/8 of the default: its siblings need memory too

cdef bint by_environment = bool(os.environ.get("TILECORE_RECYCLE_BYTES"))
cdef Py_ssize_t limit_forks = -1    # `forks` when the limit was set or adapted
LEAST_RECYCLED_BYTES = TILECORE_SMALL_BYTES  # `tilecore profile` keeps results from this size on alive
cdef unsigned int trace_domain = _tracemalloc_domain


cdef cnp.ndarray new_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted):
    """A C-contiguous array, references NULL; or an error above the limit. `prefaulted`: half its pages were mapped."""
    check_size(nbytes)
    prefaulted[0] = False
    if nbytes >= TILECORE_SMALL_BYTES:
        array = make_recycled_array(ndim, shape, dtype, nbytes, prefaulted)
        if array is not None:
            return array
    array = try_array(ndim, shape, dtype, NULL, 0)
    if array is None:
        tilecore_arena_trim(0)
        array = try_array(ndim, shape, dtype, NULL, 0)
        if array is None:
            raise no_memory_error(nbytes)
    return array


# ---------------------------------------------------------------- the memory handler, which NumPy calls

cdef void *handler_malloc(void *context, size_t bytes) noexcept nogil:
    return malloc(bytes)


cdef void *handler_calloc(void *context, size_t count, size_t bytes) noexcept nogil:
    return calloc(count, bytes)


cdef void handler_free(void *context, void *data, size_t bytes) noexcept nogil:
    if not tilecore_arena_free(<char *>data):
        free(data)


cdef void *handler_realloc(void *context, void *data, size_t bytes) noexcept nogil:
    """For `ndarray.resize`. Data that outgrows recycled memory, or needs less than half of it, moves to malloc's."""
    cdef size_t capacity = tilecore_arena_capacity(<char *>data)
    cdef void *moved
    if capacity == 0:
        return realloc(data, bytes)
    if capacity // 2 <= bytes <= capacity:
        return data
    moved = malloc(bytes)
    if moved != NULL:
        memcpy(moved, data, min(capacity, bytes))
        handler_free(context, data, capacity)
    return moved


cdef PyDataMem_Handler handler
strcpy(handler.name, "tilecore")
handler.version = 1
handler.allocator.malloc = handler_malloc
handler.allocator.calloc = handler_calloc
handler.allocator.realloc = handler_realloc
handler.allocator.free = handler_free
cdef object capsule = PyCapsule_New(&handler, "mem_handler", NULL)


cdef int adapt_limit() except -1:
    """Lower the default limit in a child of multiprocessing."""
    if tilecore_atomic_load(&limit_forks) != forks:
        if not by_environment and in_multiprocessing_child():
            tilecore_arena_set_limit(min(tilecore_arena_limit(), default_limit // CHILD_DIVISOR))
        tilecore_atomic_store(&limit_forks, forks)
    return 0


cdef cnp.ndarray make_recycled_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted):
    """A new array in recycled memory, or None."""
    cdef cnp.ndarray array
    cdef char *data
    adapt_limit()
    if nbytes > tilecore_arena_limit():
        return None
    if dtype.type_num == NPY_VSTRING:
        return None  # NumPy makes a new dtype only if it allocates; else the strings would lie in the input's
    handler_of_context = PyDataMem_GetHandler()
    if <PyObject *>handler_of_context != PyDataMem_DefaultHandler:
        return None  # the program has set an allocator of its own
    data = tilecore_arena_alloc(nbytes, prefaulted)
    if data == NULL:
        return None
    if not leave_heap_alone:
        tilecore_arena_raise_heap()
    if PyDataType_REFCHK(dtype):
        memset(data, 0, nbytes)
    array = try_array(ndim, shape, dtype, data, NPY_ARRAY_CARRAY)
    if array is None:
        tilecore_arena_free(data)
        return None
    # NumPy takes the same steps for memory from a handler.
    Py_INCREF(capsule)
    (<PyArrayObject_fields *>array).mem_handler = <PyObject *>capsule
    PyTraceMalloc_Track(trace_domain, <size_t>data, nbytes)
    cnp.PyArray_ENABLEFLAGS(array, NPY_ARRAY_OWNDATA)
    return array


# ---------------------------------------------------------------- limits

def get_max_bytes():
    """The largest result, in bytes, that tilecore allocates; see `set_max_bytes`.

    >>> import tilecore
    >>> tilecore.get_max_bytes() > 0
    True

    Returns
    -------
    int
        Bytes. The default is the lower of the physical memory and the cgroup's limit. The environment variable
        ``TILECORE_MAX_BYTES`` sets another default when tilecore is imported.
    """
    return max_bytes


def set_max_bytes(n, /):
    """Refuse to allocate results larger than `n` bytes.

    >>> import tilecore
    >>> tilecore.set_max_bytes(1 << 20)
    >>> tilecore.tile([1, 2, 3], 10**6)         # doctest: +ELLIPSIS
    Traceback (most recent call last):
    MemoryError: tile: the result would take 24000000 bytes, more than the limit of 1048576 bytes, ...
    >>> tilecore.set_max_bytes(None)            # back to the default

    This guards against hostile or mistaken repeats: the error comes before anything is allocated. Results that are
    written into ``out=`` are not limited.

    Parameters
    ----------
    n : int or str, or None
        Bytes, or a string: ``"4G"`` and ``"4GiB"`` are binary, ``"4GB"`` is decimal. 0 refuses all but empty results.
        None restores the default.

    Raises
    ------
    TypeError, ValueError
        If `n` is of no such type; if it is negative, does not fit 64 bits, or is a string without a number of bytes.
    """
    global max_bytes
    max_bytes = default_max_bytes if n is None else read_bytes("set_max_bytes", n)


cdef int check_size(Py_ssize_t nbytes, what="the result") except -1:
    if nbytes > max_bytes:
        raise RequestError(MemoryError, f"{what} would take {format_bytes(nbytes)}, more than the limit of "
                           f"{format_bytes(max_bytes)}, see tilecore.set_max_bytes")
    return 0


cdef no_memory_error(nbytes):
    return RequestError(MemoryError, f"no memory for a result of {format_bytes(nbytes)}")


cdef format_bytes(nbytes):
    """`12000000000000 bytes (12 TB)`; without the unit below a gigabyte."""
    return f"{nbytes} bytes" if nbytes < 10**9 else f"{nbytes} bytes ({with_unit(nbytes, 'B')})"


def recycled_bytes():
    """How much memory is kept idle for later results.

    >>> import numpy, tilecore
    >>> tilecore.release_memory()
    >>> x = tilecore.tile(numpy.zeros((1024, 1024)), (4, 1))    # (4096, 1024): 32 MiB
    >>> del x
    >>> tilecore.recycled_bytes() in (0, 2**25)                 # 0 if not on Linux
    True

    When a result of 128 KiB or more is garbage-collected, its memory is kept, and later results of any size reuse
    it. Idle memory is at most 64 MiB plus the last minute's peak of memory in use. A minute after the last result was
    garbage-collected, all idle memory goes back to the system. `release_memory` returns it at once. A fork leaves at
    most 64 MiB idle in the parent, and none in the child. Recycling is Linux-only.

    Returns
    -------
    int
        Bytes; at most `get_recycle_limit()`, unless an address limit was set since (see `set_recycle_limit`).
    """
    return tilecore_arena_idle()


def get_recycle_limit():
    """The most memory, in bytes, that is kept idle for later results; see `set_recycle_limit`.

    >>> import tilecore
    >>> tilecore.get_recycle_limit() >= 0
    True
    """
    adapt_limit()
    return 0 if tilecore_addresses_limited() else tilecore_arena_limit()


def set_recycle_limit(n, /):
    """Keep at most `n` bytes of memory idle for later results.

    >>> import tilecore
    >>> before = tilecore.get_recycle_limit()
    >>> tilecore.set_recycle_limit(0)           # every result's memory is returned at once
    >>> tilecore.set_recycle_limit(before)

    The default is 1/16 of the physical memory or of the cgroup's limit, and at most 1 GiB; 0 under
    ``vm.overcommit_memory=2``, because Linux then counts addresses as memory. The environment variable
    ``TILECORE_RECYCLE_BYTES`` sets another one. In a child process of multiprocessing the limit is at most an eighth
    of the default, unless the variable is set or the child calls this function.

    Under an address limit (``RLIMIT_AS``, ``RLIMIT_DATA``; ``ulimit -v``, ``ulimit -d``) nothing is kept for any
    `n`, because idle memory counts towards it. If such a limit is set later, call `release_memory`, or make a result
    of 4 MiB or more. Reserved addresses, 1 GiB or more, stay until the last result is garbage-collected.

    Parameters
    ----------
    n : int or str, or None
        Bytes, 0 or more; or a string, as for `set_max_bytes`. The memory of larger results is not kept. Idle
        memory beyond the limit is returned to the system at once. None restores the default.

    Raises
    ------
    TypeError, ValueError
        As `set_max_bytes`.
    """
    cdef Py_ssize_t limit = default_limit if n is None else read_bytes("set_recycle_limit", n)
    tilecore_atomic_store(&limit_forks, -1 if n is None else forks)
    tilecore_arena_set_limit(limit)


def release_memory():
    """Return all idle memory to the system, also that of glibc's heap; see `recycled_bytes`.

    >>> import tilecore
    >>> tilecore.release_memory()
    >>> tilecore.recycled_bytes()
    0
    """
    tilecore_arena_trim(0)


if tilecore_arena_start(os.environ.get("NUMPY_MADVISE_HUGEPAGE") != "0"):
    raise ImportError("tilecore: no memory to register what happens at fork()")

cdef bint addresses_count = read_text("/proc/sys/vm/overcommit_memory").startswith("2")
cdef Py_ssize_t physical = physical_memory()
cdef Py_ssize_t default_limit = 0 if addresses_count else min(physical // 16, 1 << 30)
cdef Py_ssize_t default_max_bytes = bytes_from_environment("TILECORE_MAX_BYTES", physical)

default_limit = bytes_from_environment("TILECORE_RECYCLE_BYTES", default_limit)
tilecore_arena_set_limit(default_limit)
set_max_bytes(None)
