from cpython.object cimport PyObject

from tilecore._core.atomic cimport tilecore_atomic_load


cdef extern from "Python.h":
    ctypedef object (*vectorcallfunc)(object, PyObject *const *, size_t, PyObject *)

cdef extern from "runtime/atomic.h":
    bint tilecore_atomic_replace(vectorcallfunc *place, vectorcallfunc before, vectorcallfunc n) nogil

cdef vectorcallfunc numpy_vectorcall
cdef vectorcallfunc *tile_pointer
cdef dict in_force
cdef install(vectorcallfunc function)
cdef bint uninstall(token) except -1


cdef inline bint points_to(vectorcallfunc function) noexcept:
    return tilecore_atomic_load(<Py_ssize_t *>tile_pointer) == <Py_ssize_t>function
