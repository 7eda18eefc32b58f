"""The pointer by which Python calls the object `numpy.tile` (PEP 590). At first it points to NumPy's own function.

If it points to another, all callers of the object get that one, by whatever name, and the object stays what it is. An
object of another kind has something else at that place. Then there is no `pointer`, and nothing is replaced.
"""

import numpy

from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport PyTypeObject


cdef extern from "Python.h":
    PyTypeObject *Py_TYPE(object)
    unsigned long Py_TPFLAGS_HAVE_VECTORCALL
    enum: METH_FASTCALL, METH_KEYWORDS
    ctypedef object (*PyCFunction)(object, object)
    ctypedef struct PyMethodDef:
        const char *ml_name
        PyCFunction ml_meth
        int ml_flags
    object PyCFunction_New(PyMethodDef *method, object own)


cdef vectorcallfunc *pointer_of(function):
    cdef PyTypeObject *kind = Py_TYPE(function)
    if (type(function).__name__ != "_ArrayFunctionDispatcher" or not kind.tp_flags & Py_TPFLAGS_HAVE_VECTORCALL
            or kind.tp_vectorcall_offset <= 0):
        return NULL
    return <vectorcallfunc *>(<char *><PyObject *>function + kind.tp_vectorcall_offset)


cdef object call_numpys(object own, PyObject *const *arguments, Py_ssize_t n, PyObject *names):
    return numpys(own, arguments, n, names)


# By the module that defines it: a program may have put a function of its own into the name `numpy.tile`.
cdef object own = getattr(numpy.lib, "_shape_base_impl", numpy).tile
pointer = pointer_of(own)
cdef vectorcallfunc *another = pointer_of(numpy.repeat)
cdef PyMethodDef method
numpy_tile = own  # as NumPy's own function, also while another has its place
if pointer == NULL or another == NULL:
    pointer = NULL
else:
    numpys = another[0]  # a copy of tilecore in another folder may have replaced that of `own`
    method.ml_name, method.ml_meth = "tile", <PyCFunction><void *>call_numpys
    method.ml_flags = METH_FASTCALL | METH_KEYWORDS
    numpy_tile = PyCFunction_New(&method, own)
