"""A plan and a place for its result -> bytes. See plans.pyx."""

from tilecore._core.plan.plan cimport Plan
from tilecore._core.request.places cimport Place
from tilecore._core.write.execute cimport Mode


cdef bint plan_prepare(Plan *plan) noexcept nogil
cdef void plan_clear(Plan *plan) noexcept nogil
cdef Mode choose_mode(const Plan *plan, Py_ssize_t nbytes, int threads, bint warm) except *
cdef Mode caller_mode(Py_ssize_t nbytes, int threads) noexcept nogil
cdef int execute_plan(const Plan *plan, const Place *source, const Place *target, Mode mode) noexcept nogil
cdef int execute_plan_region(const Plan *plan, const Place *source, const Place *target, const Py_ssize_t *start,
                             const Py_ssize_t *stop, Py_ssize_t nbytes, Mode mode) noexcept nogil
