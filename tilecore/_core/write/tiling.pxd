"""A plan, and the StridedArrays of source and result -> bytes. See tiling.pyx."""

from tilecore._core.plan.nest cimport Nest, RegionIter
from tilecore._core.plan.plan cimport Plan
from tilecore._core.strided_arrays cimport StridedArray
from tilecore._core.write.stores cimport Stores


ctypedef void (*tilecore_task)(void *argument, Py_ssize_t first, Py_ssize_t last) noexcept nogil


cdef struct WriteOptions:   # how a call writes
    Py_ssize_t nbytes       # in all
    int threads             # at most: see choose_threads
    bint by_default         # the caller left the number of threads to tilecore
    bint prefaulted         # half of the output's pages, or more, were mapped; assumed of the caller's `out`
    long long next_check    # for signals, in nanoseconds; LLONG_MAX: none, as outside the main thread
    Py_ssize_t unchecked    # bytes written since the clock was last read


cdef struct Bands:          # parts of a region, along its outermost axis
    RegionIter iter
    char *dst
    const char *src
    Stores stores


cdef int read_options(WriteOptions *options, Py_ssize_t nbytes, int threads, bint prefaulted,
                      bint references) except -1
cdef void fill_options(WriteOptions *options, Py_ssize_t nbytes, int threads,
                       bint prefaulted) noexcept nogil
cdef int write_tiling(const Plan *plan, const StridedArray *source, const StridedArray *target,
                      WriteOptions *options) noexcept nogil
cdef int write_nest(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes,
                    WriteOptions *options) noexcept nogil
cdef int run_task(tilecore_task task, int kind, Stores stores, void *argument, Py_ssize_t total, Py_ssize_t nbytes,
                  WriteOptions *options) noexcept nogil
cdef void write_bands(void *bands, Py_ssize_t first, Py_ssize_t last) noexcept nogil
cdef int check_signals(WriteOptions *options, Py_ssize_t nbytes) noexcept nogil


cdef inline int check_status(int status) except -1:
    """Return `status`; if it is -1, raise the exception that check_signals has set."""
    return status
