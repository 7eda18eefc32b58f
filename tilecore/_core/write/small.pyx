"""Results of less than TILECORE_SMALL_BYTES, as nine in ten are. Creating the array takes most of their time.

make_small creates and writes it in one step, without a nest and without workers. See kernels/isa/small.h.
"""

cimport numpy as cnp

from tilecore._core.config cimport TILECORE_NOGIL_BYTES
from tilecore._core.numpy_api cimport PyArray_IS_C_CONTIGUOUS, PyDataType_REFCHK, try_array
from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, next_step
from tilecore._core.plan.plan cimport input_shape
from tilecore._core.resources.memory cimport max_bytes
from tilecore._core.strided_arrays cimport has_shape
from tilecore._core.write.processor cimport tilecore_gather

cnp.import_array()


cdef enum:
    PACKED_BYTES = 4096     # of a source in another order: it is packed on the stack


cdef cnp.ndarray make_small(const Plan *plan, cnp.ndarray array):
    """A new array with the tiling, if that is small and of plain bytes; else None. Raises no error."""
    cdef cnp.ndarray result
    cdef char packed[PACKED_BYTES]
    cdef char *dst
    cdef const char *src = packed
    if (not is_small(plan) or plan.nbytes > max_bytes
            or (not 0 <= cnp.PyArray_TYPE(array) < cnp.NPY_OBJECT and PyDataType_REFCHK(array.descr))
            or not (PyArray_IS_C_CONTIGUOUS(array) or can_pack(plan))):
        return None
    result = try_array(plan.ndim, plan.output, array.descr, NULL, 0)
    # Other code may have run meanwhile. Without memory, or with another shape, make_and_write raises the error.
    if result is None or not has_shape(array, plan.input_ndim, input_shape(plan)):
        return None
    if PyArray_IS_C_CONTIGUOUS(array):
        src = cnp.PyArray_BYTES(array)
    elif can_pack(plan):
        pack_on_stack(packed, array)
    else:
        return None
    dst = cnp.PyArray_BYTES(result)
    if plan.nbytes < TILECORE_NOGIL_BYTES:
        write_small(plan, dst, src)
    else:
        with nogil:
            write_small(plan, dst, src)
    return result


cdef inline bint can_pack(const Plan *plan) noexcept:
    cdef Py_ssize_t item = plan.itemsize
    return plan.nbytes // plan.copies <= PACKED_BYTES and item <= 16 and item & (item - 1) == 0


cdef void pack_on_stack(char *dst, cnp.ndarray array) noexcept:
    """Copy the items to `dst`, in C order: the last two axes by tilecore_gather."""
    cdef Loop outer[MAX_LOOPS]
    cdef Py_ssize_t at[MAX_LOOPS]   # the positions in them
    cdef const char *src = cnp.PyArray_BYTES(array)
    cdef Py_ssize_t item = cnp.PyArray_ITEMSIZE(array)
    cdef int k, last = cnp.PyArray_NDIM(array) - 1
    cdef Py_ssize_t count = cnp.PyArray_DIM(array, last), rows = cnp.PyArray_DIM(array, last - 1) if last else 1
    cdef Py_ssize_t pitch = cnp.PyArray_STRIDE(array, last - 1) if rows > 1 else 0  # a single row's may be any number
    cdef Py_ssize_t steps
    cdef char *unused = dst
    for k in range(last - 1):
        steps = cnp.PyArray_DIM(array, last - 2 - k)
        outer[k] = Loop(steps, cnp.PyArray_STRIDE(array, last - 2 - k) if steps > 1 else 0, 0)
        at[k] = 0
    while True:
        tilecore_gather(dst, count * item, item, src, pitch, cnp.PyArray_STRIDE(array, last), rows, count, item)
        dst += rows * count * item
        if not next_step(outer, at, last - 1, &unused, &src):
            return
