"""A plan, and where source and result lie -> bytes. See tiling.pyx."""

from tilecore._core.plan.nest cimport Nest
from tilecore._core.plan.plan cimport Plan
from tilecore._core.request.array_refs cimport ArrayRef
from tilecore._core.resources.threads cimport default_threads
from tilecore._core.write.signals cimport SignalChecks


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES


ctypedef void (*tilecore_task)(void *job, Py_ssize_t first, Py_ssize_t last) noexcept nogil


cdef struct Mode:           # how a call writes
    int threads             # at most
    bint prefaulted               # the output has been written before, so its pages are there
    SignalChecks signals    # on in the main thread alone


cdef bint plan_prepare(Plan *plan) noexcept nogil
cdef void plan_clear(Plan *plan) noexcept nogil
cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint prefaulted) except *
cdef bint backs_off() noexcept nogil
cdef int write_tiling(const Plan *plan, const ArrayRef *source, const ArrayRef *target, Mode *mode) noexcept nogil
cdef int write_nest(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode *mode) noexcept nogil
cdef int run_task(tilecore_task task, void *job, Py_ssize_t total, Py_ssize_t nbytes, Mode *mode) noexcept nogil
cdef void write_table(const Py_ssize_t *src_at, const Py_ssize_t *dst_at, Py_ssize_t n, Py_ssize_t itemsize,
                      char *dst, const char *src) noexcept nogil


cdef inline Mode simple_mode(int threads, bint prefaulted) noexcept nogil:
    """Without checks for signals."""
    cdef Mode mode
    mode.threads, mode.prefaulted = threads, prefaulted
    mode.signals.on, mode.signals.work, mode.signals.last = False, 0, 0
    return mode


cdef inline Mode caller_mode(Py_ssize_t nbytes, int threads) noexcept nogil:
    """How to write for a caller from C: the memory is taken for prefaulted, and signals are the caller's business."""
    if threads <= 0:
        threads = default_threads() if nbytes >= TILECORE_THREAD_BYTES and not backs_off() else 1
    return simple_mode(threads, True)
