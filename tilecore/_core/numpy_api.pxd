"""Declarations of NumPy's C API that Cython's own `numpy.pxd` lacks, or declares to return an object."""

cimport numpy as cnp
from cpython.exc cimport PyErr_Clear
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF


cdef enum:
    MAX_RANK = 64  # NumPy's own limit since 2.0


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX, PY_SSIZE_T_MIN
    ctypedef struct PyTypeObject:
        const char *tp_name
        PyObject *tp_dict
        Py_ssize_t tp_vectorcall_offset
    PyTypeObject *Py_TYPE(object)
    void PyType_Modified(PyTypeObject *type) noexcept


cdef extern from "numpy/arrayscalars.h":
    pass


cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyArrayObject_fields:
        PyObject *mem_handler
    PyTypeObject PyArray_Type
    enum: NPY_USERDEF, NPY_VSTRING
    enum: NPY_ARRAY_CARRAY, NPY_ARRAY_OWNDATA
    bint PyArray_Check(object a) noexcept
    bint PyArray_CheckExact(object a) noexcept
    PyObject *descr_of "(PyObject *)PyArray_DESCR" (cnp.ndarray a) noexcept  # borrowed, to be compared
    bint PyArray_IS_C_CONTIGUOUS(cnp.ndarray a) noexcept
    bint PyArray_ISWRITEABLE(cnp.ndarray a) noexcept
    bint PyDataType_REFCHK(cnp.dtype dtype) noexcept
    PyObject *PyArray_NewFromDescr(PyTypeObject *subtype, cnp.dtype dtype, int ndim, const Py_ssize_t *shape,
                                   const Py_ssize_t *strides, void *data, int flags, PyObject *obj)
    cnp.ndarray new_from_descr "(PyArrayObject *)PyArray_NewFromDescr" (
        PyTypeObject *subtype, cnp.dtype dtype, int ndim, const Py_ssize_t *shape,
        const Py_ssize_t *strides, void *data, int flags, PyObject *obj)
    int PyArray_SetBaseObject(cnp.ndarray array, object base) except -1

    ctypedef struct PyDataMemAllocator:
        void *(*malloc)(void *context, size_t bytes) noexcept nogil
        void *(*calloc)(void *context, size_t count, size_t bytes) noexcept nogil
        void *(*realloc)(void *context, void *data, size_t bytes) noexcept nogil
        void (*free)(void *context, void *data, size_t bytes) noexcept nogil
    ctypedef struct PyDataMem_Handler:
        char *name
        unsigned char version
        PyDataMemAllocator allocator
    object PyDataMem_GetHandler()
    PyObject *PyDataMem_DefaultHandler


cdef extern from *:
    """
    /* Whether `item` is an int of one digit, as nearly all are. Sets *value, without a call into Python. */
    CYTHON_UNUSED static int tilecore_short_int(PyObject *item, long long *value)
    {
    #if PY_VERSION_HEX >= 0x030C0000
        if (!PyLong_CheckExact(item) || !PyUnstable_Long_IsCompact((PyLongObject *)item)) return 0;
        return *value = PyUnstable_Long_CompactValue((PyLongObject *)item), 1;
    #else
        if (!PyLong_CheckExact(item) || (size_t)(Py_SIZE(item) + 1) > 2) return 0;
        return *value = Py_SIZE(item) * (long long)((PyLongObject *)item)->ob_digit[0], 1;
    #endif
    }

    /* Whether `item` is a NumPy integer scalar that fits a long long. Sets *value, runs no code, makes no object. */
    CYTHON_UNUSED static int tilecore_integer_scalar(PyObject *item, long long *value)
    {
        PyTypeObject *type = Py_TYPE(item);
    #define TILECORE_SCALAR(name) if (type == &Py##name##ArrType_Type) \
            return *value = (long long)PyArrayScalar_VAL(item, name), \
                   (*value > 0) == (PyArrayScalar_VAL(item, name) > 0);
        TILECORE_SCALAR(Long) TILECORE_SCALAR(Int) TILECORE_SCALAR(LongLong) TILECORE_SCALAR(Short)
        TILECORE_SCALAR(Byte) TILECORE_SCALAR(ULong) TILECORE_SCALAR(UInt) TILECORE_SCALAR(ULongLong)
        TILECORE_SCALAR(UShort) TILECORE_SCALAR(UByte)
    #undef TILECORE_SCALAR
        return 0;
    }
    """
    bint short_int "tilecore_short_int" (object item, long long *value) noexcept
    bint integer_scalar "tilecore_integer_scalar" (object item, long long *value) noexcept


cdef inline cnp.ndarray try_array(int ndim, const Py_ssize_t *shape, cnp.dtype dtype, void *data, int flags):
    """A C-contiguous array at `data`, or in new memory for NULL; None if there is no memory."""
    Py_INCREF(dtype)  # PyArray_NewFromDescr steals it
    cdef PyObject *reference = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, data, flags, NULL)
    if reference == NULL:
        PyErr_Clear()
        return None
    array = <cnp.ndarray>reference
    Py_DECREF(array)
    return array


cdef inline cnp.ndarray array_upon(base, int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                                   cnp.dtype dtype, void *data, int flags):
    """An array in memory that `base` owns, or that outlives it if `base` is None."""
    Py_INCREF(dtype)
    array = new_from_descr(&PyArray_Type, dtype, ndim, shape, strides, data, flags, NULL)
    Py_INCREF(base)  # PyArray_SetBaseObject steals this
    PyArray_SetBaseObject(array, base)
    return array
