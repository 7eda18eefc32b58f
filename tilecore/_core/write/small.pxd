cimport numpy as cnp

from tilecore._core.plan.plan cimport Sizes
from tilecore._core.write.processor cimport TILECORE_NOGIL_BYTES, kernels


cdef cnp.ndarray make_small(const Sizes *sizes, cnp.ndarray array)


cdef inline bint is_small(const Sizes *sizes) noexcept nogil:
    """Whether write_small may write the result, C-contiguous from C-contiguous."""
    return 0 < sizes.nbytes < TILECORE_NOGIL_BYTES


cdef inline void write_small(const Sizes *sizes, char *dst, const char *src) noexcept nogil:
    kernels.write_small(kernels, sizes.ndim, sizes.shape, sizes.repeats, sizes.itemsize, dst, src)
