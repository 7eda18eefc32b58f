"""A plan and the places of source and result -> bytes. See plans.pyx."""

from tilecore._core.plan.plan cimport Plan
from tilecore._core.request.places cimport Place
from tilecore._core.write.execute cimport Mode


cdef bint plan_prepare(Plan *plan) noexcept nogil
cdef void plan_clear(Plan *plan) noexcept nogil
cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint warm) except *
cdef Mode caller_mode(Py_ssize_t nbytes, int threads) noexcept nogil
cdef int execute_plan(const Plan *plan, const Place *source, const Place *target, Mode mode) noexcept nogil
