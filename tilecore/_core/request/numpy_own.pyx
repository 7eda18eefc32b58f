"""The pointer by which Python calls the object `numpy.tile` (PEP 590). At first it points to NumPy's own function.

If it points to another, all callers of the object get that one, by whatever name, and the object stays what it is. An
object of another kind has something else at that place. Then there is no `pointer`, and nothing is replaced.
"""

import numpy

from cpython.object cimport PyCFunction, PyMethodDef, PyObject

from tilecore._core.numpy_api cimport PyTypeObject


cdef extern from "Python.h":
    enum: METH_FASTCALL, METH_KEYWORDS
    PyTypeObject *Py_TYPE(object)
    vectorcallfunc PyVectorcall_Function(object)
    object PyCFunction_New(PyMethodDef *method, object own)


cdef object call_numpys(object own, PyObject *const *arguments, Py_ssize_t n, PyObject *names):
    return numpys(own, arguments, n, names)


# By the module that defines it: a program may have put a function of its own into the name `numpy.tile`.
cdef object home = getattr(numpy.lib, "_shape_base_impl", numpy), own = home.tile
cdef PyMethodDef method
numpy_tile = own  # as NumPy's own function, also while another has its place
if type(own) is type(home.kron) and type(own).__name__ == "_ArrayFunctionDispatcher":
    numpys = PyVectorcall_Function(home.kron)  # a copy of tilecore in another folder may have replaced that of `own`
if numpys != NULL:
    pointer = <vectorcallfunc *>(<char *><PyObject *>own + Py_TYPE(own).tp_vectorcall_offset)
    method.ml_name, method.ml_meth = "tile", <PyCFunction><void *>call_numpys
    method.ml_flags = METH_FASTCALL | METH_KEYWORDS
    numpy_tile = PyCFunction_New(&method, own)
