// The second source file: it uses what consumer.cpp has imported.
#define PY_SSIZE_T_CLEAN
#define TILECORE_UNIQUE_SYMBOL cpp_consumer_tilecore
#define TILECORE_NO_IMPORT
#include <tilecore/tilecore.h>

PyObject *tile_any(PyObject *, PyObject *args);

// tile_any(array, repeats) -> array, of any strides and dtype.
PyObject *tile_any(PyObject *, PyObject *args)
{
    PyObject *array, *repeats;
    if (!PyArg_ParseTuple(args, "OO", &array, &repeats)) return nullptr;
    return tilecore_array_tile(array, repeats);
}
