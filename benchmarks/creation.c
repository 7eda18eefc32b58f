/* create(array, shape): a new array of this shape and of the array's dtype, with nothing written. It is the limit of
 * calls that make small results, for test_call.py, which compiles it as loops.c is compiled. */
#include <Python.h>

#include <numpy/arrayobject.h>

static PyObject *create(PyObject *module, PyObject *const *arguments, Py_ssize_t n)
{
    PyArray_Descr *const dtype = PyArray_DESCR((PyArrayObject *)arguments[0]);
    npy_intp shape[NPY_MAXDIMS];
    int k, ndim = (int)PyTuple_GET_SIZE(arguments[1]);
    for (k = 0; k < ndim; k++) shape[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(arguments[1], k));
    Py_INCREF(dtype);
    (void)module, (void)n;
    return PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, NULL, 0, NULL);
}

static PyMethodDef methods[] = {{"create", (PyCFunction)(void (*)(void))create, METH_FASTCALL, NULL}, {0}};
static struct PyModuleDef creation = {PyModuleDef_HEAD_INIT, "creation", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_creation(void)
{
    import_array();
    return PyModule_Create(&creation);
}
