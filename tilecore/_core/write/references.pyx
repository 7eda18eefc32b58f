"""Items that hold references: NumPy copies or counts them.

A new array of Python objects is written as bytes. Then each reference in it is counted, before other code runs. This
needs the GIL, and items that are a reference and nothing else.

NumPy copies everything else, with the GIL: items into an `out`, structures, strings of variable length. A nest becomes
two views, one of the source, with stride 0 for a repeat, and one of the result. If such views have short rows of
strings, the source is first copied into C order. As in NumPy, the destructor of an object may write to the arrays
meanwhile, but must not free their memory.
"""

cimport numpy as cnp

from tilecore._core.numpy_api cimport NPY_VSTRING, array_upon
from tilecore._core.plan.nest cimport MAX_LOOPS, Nest, RegionIter, next_piece, region_iter_init
from tilecore._core.plan.plan cimport Plan
from tilecore._core.resources.memory cimport no_memory_error
from tilecore._core.strided_arrays cimport StridedArray, locate_array

cnp.import_array()


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define TILECORE_HAS_GIL 0
    #else
    #define TILECORE_HAS_GIL 1
    #endif
    /* Add `n` references to each object: one by one if Python traces counts, or if the count may mean "immortal". */
    static void tilecore_add(void *objects, Py_ssize_t items, Py_ssize_t n)
    {
        for (PyObject **at = (PyObject **)objects; items > 0; items--, at++) {
            if (*at == NULL) continue;
    #if SIZEOF_VOID_P >= 8 && !defined(Py_REF_DEBUG) && !defined(Py_GIL_DISABLED)
            if (n < (1 << 28) && Py_REFCNT(*at) < (1 << 28)) {
                Py_SET_REFCNT(*at, Py_REFCNT(*at) + n);
                continue;
            }
    #endif
            for (Py_ssize_t i = 0; i < n; i++) Py_INCREF(*at);
        }
    }
    """
    void tilecore_add(void *at, Py_ssize_t items, Py_ssize_t n) noexcept
    bint TILECORE_HAS_GIL


cdef extern from "numpy/arrayobject.h":
    int PyArray_INCREF(cnp.ndarray array) except -1
    int PyArray_CopyInto(cnp.ndarray to, cnp.ndarray source) except -1
    enum: NPY_ARRAY_WRITEABLE


cdef enum:
    SHORT_ROW = 64      # items; NumPy prepares each row, in the time that copying a few dozen items takes
    SHORT_AXIS = 16     # strings in another order than C, with fewer along the last axis, are first copied into C order


cdef bint can_be_counted(cnp.dtype dtype) noexcept:
    """Whether a new array of this dtype may be written as bytes, for count_references."""
    return TILECORE_HAS_GIL and dtype.type_num == cnp.NPY_OBJECT


cdef int count_references(cnp.ndarray array, Py_ssize_t copies, cnp.ndarray result) except -1:
    """Count the references in `result`. `copies`: how many it holds of each item of `array`, or 0 if it varies."""
    if copies and cnp.PyArray_ISONESEGMENT(array):  # in any order
        tilecore_add(cnp.PyArray_DATA(array), cnp.PyArray_SIZE(array), copies)
        return 0
    return PyArray_INCREF(result)


cdef int copy_references(const Plan *plan, cnp.ndarray array, const StridedArray *source, cnp.ndarray result,
                         const StridedArray *target) except -1:
    """Write the plan's result, which must not be empty."""
    cdef RegionIter iter
    cdef Nest nest
    cdef StridedArray copied
    region_iter_init(&iter, plan, source, target)
    try:
        if (cnp.PyArray_TYPE(array) == NPY_VSTRING and plan.copies > 1 and not source.contiguous
                and iter.axis[0].src_step != 0 and iter.axis[0].extent == iter.axis[0].count < SHORT_AXIS):
            array = <cnp.ndarray>cnp.PyArray_NewCopy(array, cnp.NPY_CORDER)
            locate_array(&copied, array)
            source = &copied
            region_iter_init(&iter, plan, source, target)
        while next_piece(&iter, &nest):
            copy_nest(&nest, array, source.data + nest.src_offset, result, target.data + nest.dst_offset)
        return 0
    except MemoryError:  # for a view, or a string
        raise no_memory_error(cnp.PyArray_NBYTES(result)) from None


cdef int copy_nest(Nest *nest, cnp.ndarray array, const char *src, cnp.ndarray result, char *dst) except -1:
    """Copy one nest. A short row that repeats is written once, and then doubled within the result."""
    cdef Py_ssize_t row = nest.loop[0].count, count = nest.loop[1].count, done = 1, n
    if (nest.n != 2 or nest.loop[1].src_step != 0 or nest.loop[1].dst_step != row or count < 16
            or row >= SHORT_ROW * cnp.PyArray_ITEMSIZE(array)):
        return copy_views(nest, array, src, result, dst)
    nest.n = 1
    copy_views(nest, array, src, result, dst)
    while done < count:
        n = min(done, count - done)
        nest.loop[0].count = n * row
        copy_views(nest, result, dst, result, dst + done * row)
        done += n
    return 0


cdef int copy_views(const Nest *nest, cnp.ndarray array, const char *src, cnp.ndarray result, char *dst) except -1:
    """Copy one nest, as two views. The nest's first loop counts bytes, its other loops count steps."""
    cdef Py_ssize_t shape[MAX_LOOPS]
    cdef Py_ssize_t src_strides[MAX_LOOPS]
    cdef Py_ssize_t dst_strides[MAX_LOOPS]
    cdef Py_ssize_t itemsize
    cdef int k, last = nest.n - 1
    for k in range(nest.n):
        itemsize = 1 if k < last else cnp.PyArray_ITEMSIZE(array)
        shape[k] = nest.loop[last - k].count // itemsize
        src_strides[k] = nest.loop[last - k].src_step * itemsize
        dst_strides[k] = nest.loop[last - k].dst_step * itemsize
    return PyArray_CopyInto(
        array_upon(result, nest.n, shape, dst_strides, result.descr, dst, NPY_ARRAY_WRITEABLE),
        array_upon(array, nest.n, shape, src_strides, array.descr, <char *>src, 0))
