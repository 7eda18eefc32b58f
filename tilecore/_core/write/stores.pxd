cdef enum Stores:
    ORDINARY
    ORDINARY_IN_ORDER   # block after block in the output's order, so that each new page is filled at once
    PAST_CACHES         # non-temporal


cdef Stores choose_stores(const char *dst, Py_ssize_t nbytes, bint prefaulted, long long *begin) noexcept nogil
cdef void note_written(const char *dst, Py_ssize_t nbytes, Stores stores, long long begin) noexcept nogil
