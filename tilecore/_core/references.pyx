# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The fallback path: items that hold references, which a copy of bytes alone would not count.

Objects and structures of objects are copied as bytes all the same, and their references counted;
StringDType, whose items only it can copy, goes through one NumPy assignment.

Counting and copying are two passes, which the GIL alone keeps together: without it, another thread that
writes to the source in between would break the counts. So no module says that it is
`freethreading_compatible`, and a Python without the GIL takes it again when tilecore is imported.
"""

import math

import numpy

cimport numpy as cnp
from tilecore._core.execute cimport Mode, execute
from tilecore._core.numpy_api cimport NPY_ARRAY_CARRAY_RO
from tilecore._core.plan cimport Nest, Plan, plan_nest

cnp.import_array()


cdef extern from *:
    """
    /* n references more to the object that `at` points to. Counting them one by one costs as much as
     * the copies do. Py_SET_REFCNT leaves immortal objects alone. Where counts are kept elsewhere (free
     * threading), are traced, or might reach the range that means immortal, one by one. */
    static void tilecore_add_references(const char *at, Py_ssize_t n)
    {
        PyObject *object;
        memcpy(&object, at, sizeof object); /* in a packed structure it may lie anywhere */
        if (object == NULL) return;         /* NumPy reads it as None */
    #if !defined(Py_GIL_DISABLED) && !defined(Py_REF_DEBUG) && SIZEOF_VOID_P >= 8
        if (n < (1 << 28) && Py_REFCNT(object) < (1 << 28)) {
            Py_SET_REFCNT(object, Py_REFCNT(object) + n);
            return;
        }
    #endif
        while (n-- > 0) Py_INCREF(object);
    }
    """
    void tilecore_add_references(const char *at, Py_ssize_t n) noexcept


cdef int write_references(const Plan *plan, cnp.ndarray array, cnp.ndarray result) except -1:
    """Fill `result`, which is new and holds no references yet, with the GIL."""
    cdef Nest nest
    cdef Py_ssize_t i, k, count
    cdef cnp.ndarray source, places
    cdef const Py_ssize_t *offsets
    cdef const char *item
    cdef int kind = cnp.PyArray_TYPE(array)
    if kind != cnp.NPY_OBJECT and kind != cnp.NPY_VOID:
        write_assigned(plan, array, result)
        return 0
    source = cnp.PyArray_FROM_OF(array, NPY_ARRAY_CARRAY_RO)
    plan_nest(plan, NULL, NULL, &nest)
    places = numpy.array(list(object_offsets(array.dtype, 0)), numpy.intp)
    count = cnp.PyArray_SIZE(places)
    offsets = <const Py_ssize_t *>cnp.PyArray_DATA(places)
    # From the first new reference to the last copied pointer nothing can raise or run other code.
    item = cnp.PyArray_BYTES(source)
    for i in range(cnp.PyArray_SIZE(source)):  # no-cython-lint: a typed loop needs its variable
        for k in range(count):
            tilecore_add_references(item + offsets[k], plan.copies)
        item += plan.itemsize
    execute(&nest, cnp.PyArray_BYTES(result), cnp.PyArray_BYTES(source), plan.nbytes, Mode(1, 0, False, False))
    return 0


def object_offsets(dtype, start):
    """Where in an item of `dtype` the references to objects lie."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        for k in range(math.prod(shape)):
            yield from object_offsets(base, start + k * base.itemsize)
    elif dtype.names is not None:
        for name in dtype.names:
            field = dtype.fields[name]
            yield from object_offsets(field[0], start + field[1])
    elif dtype.kind == "O":
        yield start


cdef write_assigned(const Plan *plan, cnp.ndarray array, cnp.ndarray result):
    """Items that only their dtype can copy (StringDType): one assignment, no intermediate.

    Every axis becomes two, repeats and extent; those of length 1 go, so that at most 63 are left.
    """
    cdef int k
    shape, source = [], []
    for k in range(plan.ndim):
        if plan.repeats[k] > 1:
            shape.append(plan.repeats[k])
            source.append(1)
        if plan.shape[k] > 1:
            shape.append(plan.shape[k])
            source.append(plan.shape[k])
    numpy.copyto(result.reshape(shape), array.reshape(source))


cdef int write_references_region(const Plan *plan, cnp.ndarray array, cnp.ndarray result,
                                 const Py_ssize_t *start, const Py_ssize_t *stop) except -1:
    """Fill `result` with [start, stop) of the tiling, by NumPy's indexing.

    It takes no more than 63 arrays of indices; so axes of which the region has one place go first, and no
    memory holds a region of two places on more.
    """
    cdef int k
    place, index, shape = [], [], []
    for k in range(plan.ndim):
        if stop[k] - start[k] == 1:
            place.append(start[k] % plan.shape[k])
        else:
            place.append(slice(None))
            index.append(numpy.arange(start[k], stop[k]) % plan.shape[k])
            shape.append(stop[k] - start[k])
    source = numpy.reshape(array, [plan.shape[k] for k in range(plan.ndim)])[(*place, ...)]
    numpy.copyto(result.reshape(shape), source[numpy.ix_(*index)] if index else source)
    return 0
