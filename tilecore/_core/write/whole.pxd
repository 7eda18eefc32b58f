"""A plan and the places of source and result -> bytes. See whole.pyx."""

from tilecore._core.plan.plan cimport Plan
from tilecore._core.request.places cimport Place
from tilecore._core.resources.threads cimport default_threads
from tilecore._core.write.execute cimport TILECORE_THREAD_BYTES, Mode, stays_alone


cdef bint plan_prepare(Plan *plan) noexcept nogil
cdef void plan_clear(Plan *plan) noexcept nogil
cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint warm) except *
cdef int execute_plan(const Plan *plan, const Place *source, const Place *target, Mode mode) noexcept nogil


cdef inline Mode caller_mode(Py_ssize_t nbytes, int threads) noexcept nogil:
    """How to write for a caller from C: the memory is taken for warm, and signals are the caller's business."""
    if threads <= 0:
        threads = default_threads() if nbytes >= TILECORE_THREAD_BYTES and not stays_alone() else 1
    return Mode(threads, True, False)
