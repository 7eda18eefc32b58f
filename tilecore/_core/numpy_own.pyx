"""The pointer by which Python calls the object `numpy.tile` (PEP 590), and what it points to.

`numpy.tile` stays the object that it is. So all callers get the function in its place, also those that bound the name
before. If `numpy.tile` is another kind of object, `tile_pointer` is NULL; to replace it is an error.

    the object's pointer -> NumPy's own function
                         or `serve_numpy_tile`: tilecore's or NumPy's (replacement.pyx)
                         or `measure`: a profile, which calls both (_profile/block.pyx)
"""

import sys

import numpy

cimport cython
from cpython.object cimport PyCFunction, PyMethodDef, PyObject

from tilecore._core.numpy_api cimport Py_TYPE


cdef extern from "Python.h":
    enum: METH_FASTCALL, METH_KEYWORDS
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


cdef dict in_force = {}  # functions in NumPy's place, by the token of each, from `install` to `uninstall`
cdef object lock = object()  # not `in_force`: a method of a dict that is locked would release it
cdef vectorcallfunc installed = numpy_vectorcall  # what this copy of tilecore last let the pointer point to


cdef install(vectorcallfunc function):
    """Let Python call `function`, until `uninstall` gets the token that is returned."""
    latest = getattr(sys.modules.get("numpy"), "tile", None)
    if tile_pointer != NULL and type(latest) is type(tile_object) and latest is not tile_object:
        raise RuntimeError("numpy.tile cannot be replaced: NumPy's module was reloaded")
    token = object()
    with cython.critical_section(lock):
        in_force[token] = <size_t>function
        if not point_to_latest():
            del in_force[token]
            why = "another copy of tilecore has" if tile_pointer != NULL else "it is not called by a pointer of NumPy's"
            raise RuntimeError(f"numpy.tile cannot be replaced: {why}")
    return token


cdef bint uninstall(token) except -1:
    """End what `install` began, in any order; return whether it was in force. This needs no memory."""
    with cython.critical_section(lock):
        was = in_force.pop(token, None) is not None
        point_to_latest()
    return was


cdef bint point_to_latest() except -1:
    """Let Python call the latest function in force, or NumPy's; return False if the pointer is not this copy's."""
    global installed
    cdef vectorcallfunc latest = numpy_vectorcall
    for function in in_force.values():
        latest = <vectorcallfunc><size_t>function
    if tile_pointer == NULL or not (tilecore_atomic_replace(tile_pointer, numpy_vectorcall, latest)
                                    or tilecore_atomic_replace(tile_pointer, installed, latest)):
        return False
    installed = latest
    return True
