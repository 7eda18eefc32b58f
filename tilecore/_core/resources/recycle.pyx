# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Recycled memory: later results reuse the memory of earlier ones.

The first touch of a page takes 1 to 4 us. While a program makes and drops other arrays, the C library returns memory
to the system and requests it again, in each call. That takes longer than tiling. So results of
TILECORE_LEAST_RECYCLED_BYTES or more lie in blocks of our own (blocks.pyx), which are kept when their arrays die.

The array owns its memory as every NumPy array does, through a memory handler (NEP 49). NumPy calls `give_back` when the
array dies. The array lives while a view, a buffer or a DLPack capsule refers to it, so nothing can see its block being
reused. The handler is set in the array itself. The context's handler is never changed: resetting it may fail for lack
of memory, and then all arrays of the program would come from here.
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
from tilecore._core.resources.blocks cimport (
    block_bytes, count_idle, give_back_block, idle_limit, new_block, resize_block, set_idle_limit, take_block, trim,
)
from tilecore._core.resources.limits cimport in_multiprocessing_child

cnp.import_array()


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    int PyTraceMalloc_Track(unsigned int domain, size_t at, size_t bytes)


cdef extern from "kernels/pages.h" nogil:
    bint tilecore_addresses_limited()


cdef extern from "kernels/locks.h" nogil:
    Py_ssize_t tilecore_atomic_load(const Py_ssize_t *counter)
    void tilecore_atomic_store(Py_ssize_t *counter, Py_ssize_t n)


cdef enum:
    CHILDREN = 8    # a child of multiprocessing keeps 1/8 of the default: its siblings need memory too

cdef bint by_environment = "TILECORE_RECYCLE_BYTES" in os.environ
cdef Py_ssize_t settled = by_environment    # whether the limit is this process' own
cdef unsigned int trace_domain = _tracemalloc_domain


# ---------------------------------------------------------------- what NumPy calls

cdef void *take(void *context, size_t bytes) noexcept nogil:
    """This allocates even if addresses are limited, because the array has no other handler."""
    cdef char *data = NULL
    cdef bint warm
    if bytes <= <size_t>PY_SSIZE_T_MAX:
        data = take_block(bytes, &warm)
        if data == NULL:
            data = new_block(bytes)
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
    if data != NULL:
        give_back_block(<char *>data)


cdef void *resize(void *context, void *data, size_t bytes) noexcept nogil:
    """For the method `ndarray.resize`."""
    cdef size_t before = block_bytes(<char *>data)
    cdef void *other
    if bytes <= before and resize_block(<char *>data, bytes):
        return data
    other = take(context, bytes)
    if other != NULL:
        memcpy(other, data, min(before, bytes))
        give_back(context, data, before)
    return other


cdef PyDataMem_Handler handler
strcpy(handler.name, "tilecore")
handler.version = 1
handler.allocator.malloc = take
handler.allocator.calloc = take_cleared
handler.allocator.realloc = resize
handler.allocator.free = give_back
cdef object capsule = PyCapsule_New(&handler, "mem_handler", NULL)


cdef bint can_recycle(Py_ssize_t nbytes) except -1:
    """Whether a result of this size may lie in a block of ours."""
    settle()
    return nbytes <= idle_limit()


cdef int settle() except -1:
    """Find the limit of a process that has not chosen one."""
    if not tilecore_atomic_load(&settled):
        if in_multiprocessing_child():
            set_idle_limit(min(idle_limit(), default_limit // CHILDREN))
        tilecore_atomic_store(&settled, True)
    return 0


def forget_process():
    """Called in a forked child, before multiprocessing notes the parent."""
    tilecore_atomic_store(&settled, by_environment)


cdef cnp.ndarray make_recycled_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *warm):
    """A new array in memory of ours, or None."""
    cdef PyObject *result
    cdef char *data
    handler_of_context = PyDataMem_GetHandler()
    if <PyObject *>handler_of_context != PyDataMem_DefaultHandler:
        return None  # the program has set an allocator of its own
    data = take_block(nbytes, warm)
    if data == NULL:
        return None
    if PyDataType_REFCHK(dtype):
        memset(data, 0, nbytes)
    result = try_array(ndim, shape, dtype, data, NPY_ARRAY_CARRAY)
    if result == NULL:
        give_back_block(data)
        PyErr_Clear()
        return None
    # As NumPy does with memory from a handler.
    Py_INCREF(capsule)
    (<PyArrayObject_fields *>result).mem_handler = <PyObject *>capsule
    PyTraceMalloc_Track(trace_domain, <size_t>data, nbytes)
    array = <cnp.ndarray>result
    Py_DECREF(array)
    cnp.PyArray_ENABLEFLAGS(array, NPY_ARRAY_OWNDATA)
    return array


# ---------------------------------------------------------------- functions

def recycled_bytes():
    """How much memory is kept idle for later results.

    >>> import numpy, tilecore
    >>> tilecore.release_memory()
    >>> x = tilecore.tile(numpy.zeros((1024, 1024)), (4, 1))    # (4096, 1024): 32 MiB
    >>> del x
    >>> tilecore.recycled_bytes() in (0, 2**25)                 # 0 if not on Linux
    True

    When a result of 128 KiB or more is garbage-collected, its memory is kept, and later results of a similar size
    reuse it. New memory would cost more time than tiling. Tools count idle memory as part of the process. The
    system may take it at any time (``MADV_FREE``), except for up to 64 MiB in blocks below 32 MiB. Memory that was
    idle for a minute goes back to the system when the next result is garbage-collected. Recycling is Linux-only.

    Returns
    -------
    int
        Bytes; at most `get_recycle_limit()`, unless an address limit was set since (see `set_recycle_limit`).

    See Also
    --------
    set_recycle_limit, release_memory
    """
    return count_idle()


def get_recycle_limit():
    """The most memory, in bytes, that is kept idle for later results; see `set_recycle_limit`.

    >>> import tilecore
    >>> tilecore.get_recycle_limit() >= 0
    True
    """
    settle()
    return 0 if tilecore_addresses_limited() else idle_limit()


def set_recycle_limit(n, /):
    """Keep at most `n` bytes of memory idle for later results.

    >>> import tilecore
    >>> before = tilecore.get_recycle_limit()
    >>> tilecore.set_recycle_limit(0)           # every result's memory goes back at once
    >>> tilecore.set_recycle_limit(before)

    The default is 1/16 of the physical memory or of the cgroup's limit, and at most 1 GiB. The environment variable
    ``TILECORE_RECYCLE_BYTES`` sets another one. In a child process of multiprocessing the limit is an eighth of the
    default, unless the variable is set or the child calls this function.

    Under an address limit (``RLIMIT_AS``, ``RLIMIT_DATA``; ``ulimit -v``, ``ulimit -d``) nothing is kept for any
    `n`. Idle memory counts towards such a limit, so other allocations could fail. If such a limit is set later,
    call `release_memory`: until then, up to 64 MiB of memory may stay idle.

    Parameters
    ----------
    n : int or str
        Bytes, 0 or more; or a string with a suffix, such as ``"256M"`` or ``"4G"``. The memory of larger results is
        not kept. Idle memory beyond the limit goes back to the system at once, the oldest first.

    Raises
    ------
    TypeError
        If `n` is neither an integer nor a string.
    ValueError
        If `n` is negative, does not fit 64 bits, or is a string that does not express a number of bytes.

    See Also
    --------
    recycled_bytes, release_memory
    """
    cdef Py_ssize_t most = read_bytes("set_recycle_limit", n)
    tilecore_atomic_store(&settled, True)
    set_idle_limit(most)


def release_memory():
    """Return all idle memory to the system; see `recycled_bytes`.

    >>> import tilecore
    >>> tilecore.release_memory()
    >>> tilecore.recycled_bytes()
    0
    """
    trim(0)


cdef Py_ssize_t default_limit = min(physical_memory() // 16, 1 << 30)

set_idle_limit(bytes_from_environment("TILECORE_RECYCLE_BYTES", default_limit))

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_process)
