"""The pointer by which Python calls the object `numpy.tile` (PEP 590). At first it points to NumPy's own function.

numpy_tile.pyx makes it point to another. All callers of the object then get that function, by whatever name, and the
object stays what it is. If `numpy.tile` is another kind of object, `tile_pointer` is NULL; to replace it is an error.
"""

import numpy

from cpython.object cimport PyCFunction, PyMethodDef, PyObject

from tilecore._core.numpy_api cimport PyTypeObject


cdef extern from "Python.h":
    enum: METH_FASTCALL, METH_KEYWORDS
    PyTypeObject *Py_TYPE(object)
    vectorcallfunc PyVectorcall_Function(object)
    object PyCFunction_New(PyMethodDef *method, object own)


cdef object call_numpy(object own, PyObject *const *arguments, Py_ssize_t n, PyObject *names):
    return numpy_vectorcall(own, arguments, n, names)


# The module that defines it is asked: a program may have put a function of its own into the name `numpy.tile`.
cdef object tile_module = getattr(numpy.lib, "_shape_base_impl", numpy), tile_object = tile_module.tile
cdef PyMethodDef method
numpy_tile = tile_object  # or, below, NumPy's own function, also while another has its place
if type(tile_object) is type(tile_module.kron) and type(tile_object).__name__ == "_ArrayFunctionDispatcher":
    # The pointer of `kron`, because a copy of tilecore in another folder may have replaced that of `tile`.
    numpy_vectorcall = PyVectorcall_Function(tile_module.kron)
if numpy_vectorcall != NULL:
    tile_pointer = <vectorcallfunc *>(<char *><PyObject *>tile_object + Py_TYPE(tile_object).tp_vectorcall_offset)
    method.ml_name, method.ml_meth = "tile", <PyCFunction><void *>call_numpy
    method.ml_flags = METH_FASTCALL | METH_KEYWORDS
    numpy_tile = PyCFunction_New(&method, tile_object)
