"""Plan: the checked sizes of a tiling, or of a region of one. write/ executes it for any source of its shape.

    tile, tilecore_tile         make one on the stack, and execute it once
    TilePlan, tilecore_plan     keep one, and plan regions on the stack
"""

cimport numpy as cnp

from tilecore._core.config cimport TILECORE_SMALL_BYTES
from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.request.integers cimport Bounds
from tilecore._core.strided_arrays cimport has_shape


cdef struct Plan:
    int ndim                        # rank of the result
    int input_ndim
    Py_ssize_t itemsize
    Py_ssize_t nbytes               # of the result
    Py_ssize_t copies               # of each input element; 0 if the result is empty, or some have more than others
    bint cuts_repeats               # of a region; one of whole repeats is planned as a tiling of its own
    Py_ssize_t shape[MAX_RANK]      # of the input, padded with 1s in front
    Py_ssize_t repeats[MAX_RANK]    # padded with 1s in front
    Py_ssize_t output_shape[MAX_RANK]  # shape * repeats, or the shape of the region
    Py_ssize_t start[MAX_RANK]      # of a region, less whole repeats; else not set


cdef bint plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                    Py_ssize_t itemsize) noexcept nogil
cdef bint fits_64_bits(cnp.ndarray array, int n, const Py_ssize_t *repeats) noexcept
cdef int raise_plan_error(const Plan *plan) except -1
cdef int plan_many(Plan *stacked, const Plan *plan, Py_ssize_t n) except -1
cdef int plan_region(Plan *region, const Plan *plan, const Bounds *bounds, bint periodic) except -1
cdef bint region_init(Plan *region, const Plan *plan, const Py_ssize_t *start, const Py_ssize_t *stop) noexcept nogil


cdef inline const Py_ssize_t *input_shape(const Plan *plan) noexcept nogil:
    """The shape of the input, of `input_ndim` axes."""
    return &plan.shape[plan.ndim - plan.input_ndim]


cdef inline int plan_tiling(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                            Py_ssize_t itemsize) except -1:
    """plan_init, or the RequestError."""
    return 0 if plan_init(plan, ndim, shape, nreps, repeats, itemsize) else raise_plan_error(plan)


cdef inline bint has_input_shape(cnp.ndarray array, const Plan *plan) noexcept:
    """Whether the present shape of `array` is the one that was planned."""
    return has_shape(array, plan.input_ndim, input_shape(plan))


cdef inline bint is_small(const Plan *plan) noexcept nogil:
    """Whether the kernel write_small may write the result, C-contiguous from C-contiguous."""
    return 0 < plan.nbytes < TILECORE_SMALL_BYTES and not plan.cuts_repeats
