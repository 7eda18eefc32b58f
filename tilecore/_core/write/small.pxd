cimport numpy as cnp

from tilecore._core.config cimport TILECORE_SMALL_BYTES
from tilecore._core.plan.plan cimport Plan
from tilecore._core.write.processor cimport kernels


cdef cnp.ndarray make_small(const Plan *plan, cnp.ndarray array)


cdef inline bint is_small(const Plan *plan) noexcept nogil:
    """Whether write_small may write the result, C-contiguous from C-contiguous."""
    return 0 < plan.nbytes < TILECORE_SMALL_BYTES and plan.copies


cdef inline void write_small(const Plan *plan, char *dst, const char *src) noexcept nogil:
    kernels.write_small(kernels, plan.ndim, plan.shape, plan.repeats, plan.itemsize, dst, src)
