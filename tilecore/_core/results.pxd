"""A plan and a source -> an array. See results.pyx."""

cimport numpy as cnp

from tilecore._core.execute cimport Mode
from tilecore._core.numpy_api cimport PyArray_IS_C_CONTIGUOUS
from tilecore._core.plan cimport MAX_RANK, Plan


cdef struct Bounds:
    Py_ssize_t start[MAX_RANK + 1]
    Py_ssize_t stop[MAX_RANK + 1]
    int starts, stops   # how many were given


cdef struct Source:     # an input as it was planned for, whatever becomes of the array meanwhile
    const char *data
    int ndim
    bint contiguous     # in the order of C
    Py_ssize_t strides[MAX_RANK]    # set where it is not


cdef inline void source_init(Source *source, cnp.ndarray array) noexcept:
    cdef int k
    source.data = cnp.PyArray_BYTES(array)
    source.ndim = cnp.PyArray_NDIM(array)
    source.contiguous = PyArray_IS_C_CONTIGUOUS(array)
    if not source.contiguous:
        for k in range(source.ndim):
            source.strides[k] = cnp.PyArray_STRIDE(array, k)


cdef inline const Py_ssize_t *strides_of(const Source *source) noexcept nogil:
    """As plan_nest and execute_region want them."""
    return NULL if source.contiguous else source.strides


cdef Mode choose_mode(Py_ssize_t nbytes, int threads, bint warm) except *
cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm,
                            cnp.ndarray array, str name, reps)
cdef whole(const Plan *plan, const Source *source, cnp.ndarray array, out, int threads, str name, reps)
cdef int read_bounds(Bounds *bounds, start, stop, str name, array, reps) except -1
cdef part(const Plan *plan, const Source *source, cnp.ndarray array, const Bounds *bounds, out, int threads,
          str name, reps)
