"""Plans: checked sizes, and the loops that write a tiling. See plan.pyx for the essay."""

cimport numpy as cnp
from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport PyArray_IS_C_CONTIGUOUS, descr_of


cdef extern from "kernels/config.h" nogil:
    bint tilecore_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *product)


cdef enum:
    MAX_RANK = 64  # NumPy's own limit since 2.0


cdef extern from *:
    Py_ssize_t PY_SSIZE_T_MAX


cdef enum PlanStatus:
    PLAN_OK
    PLAN_NEGATIVE        # a negative repeat
    PLAN_AXIS_OVERFLOW   # extent * repeat of one axis
    PLAN_COUNT_OVERFLOW  # the product of the output's extents
    PLAN_BYTES_OVERFLOW  # that times the itemsize


cdef struct Plan:
    int ndim                        # rank of the output
    int input_ndim
    int axis                        # the axis at fault where plan_init fails
    Py_ssize_t itemsize
    Py_ssize_t nbytes               # of the output
    Py_ssize_t input_nbytes         # of the input; 0 where the output is empty
    Py_ssize_t copies               # of each input element; 0 where the output is empty
    Py_ssize_t shape[MAX_RANK]      # of the input, padded with 1s in front
    Py_ssize_t repeats[MAX_RANK]    # padded with 1s in front
    Py_ssize_t output[MAX_RANK]     # shape * repeats


cdef struct Axis:
    Py_ssize_t count  # steps, at least 1
    Py_ssize_t src    # bytes per step in the source: 0 for a repeat
    Py_ssize_t dst    # bytes per step in the output


cdef struct Nest:
    int n                           # axes in use; axis[0] is a run of bytes: src 1, dst 1
    Py_ssize_t src, dst             # where the first run lies, from the start of source and output
    Axis axis[2 * MAX_RANK + 1]     # innermost first


cdef struct Place:      # where the elements of an array lie, as noted once, whatever becomes of the array
    char *data
    int ndim
    bint contiguous     # in the order of C
    Py_ssize_t strides[MAX_RANK]    # set where it is not


cdef inline void place_note(Place *place, cnp.ndarray array) noexcept:
    cdef int k
    place.data = cnp.PyArray_BYTES(array)
    place.ndim = cnp.PyArray_NDIM(array)
    place.contiguous = PyArray_IS_C_CONTIGUOUS(array)
    if not place.contiguous:
        for k in range(place.ndim):
            place.strides[k] = cnp.PyArray_STRIDE(array, k)


cdef inline const Py_ssize_t *place_strides(const Place *place) noexcept nogil:
    """Its strides, or NULL for the order of C."""
    if place.contiguous:
        return NULL
    return &place.strides[0]


cdef struct Held:       # an array, its memory and what lies there, as noted by one who holds the array and its dtype
    PyObject *array
    PyObject *dtype
    PyObject *base      # whose the memory is; NULL where it is the array's own
    const char *data
    Py_ssize_t nbytes   # of its items, wherever they lie


cdef inline void held_note(Held *held, cnp.ndarray array, Py_ssize_t nbytes) noexcept:
    held[0] = Held(<PyObject *>array, descr_of(array), cnp.PyArray_BASE(array), cnp.PyArray_BYTES(array), nbytes)


cdef inline bint holds(const Held *held) noexcept:
    """False where code that has run since may have freed the memory, or made something else of what lies there.

    `ndarray.resize` and `ndarray.__setstate__` do that to any array, and may get the same address again; and
    `dtype.__setstate__` changes the size of items. Another shape does no harm.
    """
    cdef cnp.ndarray array = <cnp.ndarray>held.array
    return (cnp.PyArray_BYTES(array) == held.data and cnp.PyArray_NBYTES(array) == held.nbytes
            and descr_of(array) == held.dtype and cnp.PyArray_BASE(array) == held.base)


cdef inline void nest_begin(Nest *nest, Py_ssize_t itemsize) noexcept nogil:
    nest.n = 1
    nest.src = nest.dst = 0
    nest.axis[0] = Axis(itemsize, 1, 1)


cdef inline void nest_push(Nest *nest, Py_ssize_t count, Py_ssize_t src, Py_ssize_t dst) noexcept nogil:
    """Put one more loop round the nest; one that only continues the outermost merges with it."""
    cdef Axis *top = &nest.axis[nest.n - 1]
    if count == 1:
        return
    if top.dst * top.count == dst and top.src * top.count == src:
        top.count *= count
    else:
        nest.axis[nest.n] = Axis(count, src, dst)
        nest.n += 1


cdef int plan_init(Plan *plan, int ndim, const Py_ssize_t *shape,
                   int nreps, const Py_ssize_t *repeats, Py_ssize_t itemsize) noexcept nogil
cdef int plan_check(const Plan *plan, int status) except -1
cdef void plan_order(const Plan *plan, const Py_ssize_t *strides, int *order) noexcept nogil
cdef void plan_nest(const Plan *plan, const Py_ssize_t *src_strides, const Py_ssize_t *dst_strides,
                    Nest *nest) noexcept nogil
