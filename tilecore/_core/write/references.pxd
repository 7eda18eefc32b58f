cimport numpy as cnp

from tilecore._core.plan.plan cimport Plan
from tilecore._core.strided_arrays cimport StridedArray


cdef bint can_be_counted(cnp.dtype dtype) noexcept
cdef int count_references(cnp.ndarray array, Py_ssize_t copies, cnp.ndarray result) except -1
cdef int copy_references(const Plan *plan, cnp.ndarray array, const StridedArray *source, cnp.ndarray result,
                         const StridedArray *target) except -1
