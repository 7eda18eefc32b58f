"""Plan: the checked sizes of a tiling, or of a window on one. write/ executes it for any source of its shape.

    tile, tilecore_tile         make one on the stack, and execute it once
    TilePlan, tilecore_plan     keep one, and make windows on the stack
"""

cimport numpy as cnp

from tilecore._core.config cimport TILECORE_SMALL_BYTES
from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.strided_arrays cimport has_shape


cdef struct Plan:
    int ndim                        # rank of the result
    int input_ndim
    Py_ssize_t itemsize
    Py_ssize_t nbytes               # of the result
    Py_ssize_t copies               # of each input element; 0 if the result is empty, or some have more than others
    bint is_window                  # a part of a tiling that cuts a repeat; whole repeats are a tiling of their own
    Py_ssize_t shape[MAX_RANK]      # of the input, padded with 1s in front
    Py_ssize_t repeats[MAX_RANK]    # padded with 1s in front
    Py_ssize_t output[MAX_RANK]     # the result's shape: shape * repeats, or that of the window
    Py_ssize_t start[MAX_RANK]      # of a window, less whole repeats; else not set


cdef struct Bounds:     # of a window, as they were given
    int ndim, stop_ndim             # entries of start, and of stop
    Py_ssize_t start[MAX_RANK]
    Py_ssize_t stop[MAX_RANK]


cdef bint plan_init(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                    Py_ssize_t itemsize) noexcept nogil
cdef bint fits_64_bits(cnp.ndarray array, int n, const Py_ssize_t *repeats) noexcept
cdef int plan_tiling(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                     Py_ssize_t itemsize) except -1
cdef cnp.ndarray plan_arguments(Plan *plan, cnp.ndarray array, reps, axis, out)
cdef int plan_stack(Plan *stacked, const Plan *plan, Py_ssize_t n) except -1
cdef int read_bounds(Bounds *bounds, start, stop) except -1
cdef int plan_window(Plan *window, const Plan *plan, const Bounds *bounds, bint periodic) except -1
cdef bint window_init(Plan *window, const Plan *plan, const Py_ssize_t *start, const Py_ssize_t *stop) noexcept nogil


cdef inline const Py_ssize_t *input_shape(const Plan *plan) noexcept nogil:
    """The shape of the input, of `input_ndim` axes."""
    return &plan.shape[plan.ndim - plan.input_ndim]


cdef inline bint plan_array(Plan *plan, cnp.ndarray array, int nreps, const Py_ssize_t *repeats) noexcept:
    """plan_init for the present shape of `array`."""
    return plan_init(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), nreps, repeats,
                     cnp.PyArray_ITEMSIZE(array))


cdef inline bint plan_fits(const Plan *plan, cnp.ndarray array) noexcept:
    """Whether the plan is for the present shape of `array`."""
    return has_shape(array, plan.input_ndim, input_shape(plan))


cdef inline bint is_small(const Plan *plan) noexcept nogil:
    """Whether the kernel write_small may write the result, C-contiguous from C-contiguous."""
    return 0 < plan.nbytes < TILECORE_SMALL_BYTES and not plan.is_window
