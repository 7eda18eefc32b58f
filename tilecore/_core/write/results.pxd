"""A plan and its source -> an array. See results.pyx."""

cimport numpy as cnp

from tilecore._core.plan.plan cimport Bounds, Plan
from tilecore._core.request.places cimport Place, place_note


cdef cnp.ndarray new_result(int ndim, const Py_ssize_t *shape, Py_ssize_t nbytes, bint *warm, cnp.dtype dtype)
cdef cnp.ndarray write_result_of(const Plan *plan, const Place *source, cnp.ndarray array, const Bounds *bounds,
                                 cnp.ndarray out, int threads)
cdef int read_bounds(Bounds *bounds, start, stop, bint signed) except -1


cdef inline cnp.ndarray write_result(const Plan *plan, cnp.ndarray array, const Bounds *bounds, cnp.ndarray out,
                                     int threads):
    """As write_result_of, of all of `array`."""
    cdef Place source
    place_note(&source, array)
    return write_result_of(plan, &source, array, bounds, out, threads)
