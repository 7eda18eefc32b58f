cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan
from tilecore._core.write.processor cimport kernels


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_NOGIL_BYTES, TILECORE_MIN_RECYCLED_BYTES


cdef cnp.ndarray make_small(const Plan *plan, cnp.ndarray array)


cdef inline bint is_small(const Plan *plan) noexcept nogil:
    """Whether write_small may write the result, C-contiguous from C-contiguous."""
    return 0 < plan.nbytes < TILECORE_MIN_RECYCLED_BYTES


cdef inline void write_small(const Plan *plan, char *dst, const char *src) noexcept nogil:
    kernels.write_small(kernels, plan.ndim, plan.shape, plan.repeats, plan.itemsize, dst, src)
