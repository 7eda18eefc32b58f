"""Decides by which stores an output is written: once for each nest, and for each region that bands write.

Panels and blocks are told the answer. They may fall back to ordinary stores, never the reverse. The bounds are the
processor's: see tilecore_processors in kernels.c. What earlier calls have learnt about hot outputs stands in
learn_stores.c.
"""

from tilecore._core.resources.processor cimport cached_bytes, stream_bytes


cdef extern from "runtime/learn_stores.h" nogil:
    bint tilecore_stores_bypass(const char *dst, Py_ssize_t nbytes, Py_ssize_t bound, long long *begin)
    void tilecore_note_written(const char *dst, Py_ssize_t nbytes, bint streams, long long begin)


cdef Stores choose_stores(const char *dst, Py_ssize_t nbytes, bint prefaulted, long long *begin) noexcept nogil:
    """Return the stores for `nbytes` of output at `dst`, and set `begin` for note_written.

    Unless the memory is `prefaulted`, the system clears each page at its first touch, which brings it into the cache.
    So ordinary stores write it, in the output's order if the output has `cached_bytes` or more.
    """
    begin[0] = 0
    if not prefaulted:
        return ORDINARY if nbytes < cached_bytes else ORDINARY_IN_ORDER
    if nbytes >= stream_bytes // 2 and tilecore_stores_bypass(dst, nbytes, stream_bytes, begin):
        return PAST_CACHES
    return ORDINARY


cdef void note_written(const char *dst, Py_ssize_t nbytes, Stores stores, long long begin) noexcept nogil:
    """After the output was written: later calls learn from it."""
    tilecore_note_written(dst, nbytes, stores == PAST_CACHES, begin)
