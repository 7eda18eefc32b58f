"""One plan and many arrays of its shape -> one array that holds the tiling of each.

The arrays are a *stack*, one array (n, *shape), or a list of arrays that lie anywhere.

    stack    written as one array, by a plan with one more axis in front, which does not repeat
    list     a StridedArray of each array is made, then all are written in one call

Threads take whole arrays if the results are small, and the blocks of one result if it is large. As everywhere
(arguments.pyx), the caller's code can run only at first: lists are copied, items converted, dtypes compared. Then
shapes are checked.
"""

from tilecore._core.request.errors import RequestError

cimport numpy as cnp
from libc.string cimport memcpy

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_Check, array_upon
from tilecore._core.plan.plan cimport Plan, Sizes, input_shape, plan_stack
from tilecore._core.request.arguments cimport has_shape, plain_array, read_items, read_target
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.write.results cimport write_result

cnp.import_array()


cdef cnp.ndarray write_batch(const Plan *plan, cnp.dtype dtype, arrays, out, int threads):
    """Return the tilings of `arrays`, by a plan for `dtype`, in `out` or in a new array."""
    if not isinstance(arrays, (list, tuple)):
        return write_stack(plan, dtype, arrays, out, threads)
    arrays = list(arrays)
    read_items(arrays, dtype, plan.sizes.input_ndim, input_shape(&plan.sizes))
    return write_result(plan, dtype, arrays, NULL, None if out is None else read_target(out, dtype), threads)


cdef cnp.ndarray write_stack(const Plan *plan, cnp.dtype dtype, arrays, out, int threads):
    cdef const Sizes *sizes = &plan.sizes
    cdef int padding = sizes.ndim - sizes.input_ndim
    cdef const Py_ssize_t *shape = input_shape(sizes)
    cdef Py_ssize_t stack_shape[MAX_RANK + 1]
    cdef Py_ssize_t strides[MAX_RANK]
    cdef Plan stacked
    cdef cnp.ndarray array = plain_array(arrays)
    cdef cnp.ndarray target = None
    cdef cnp.dtype actual = array.descr
    cdef int k
    if cnp.PyArray_NDIM(array) == 0 and not PyArray_Check(arrays):
        raise RequestError(TypeError, "must be a list or a tuple of arrays, or one array with one more axis in front, "
                           f"got {type(arrays).__name__}", "input")
    if actual is not dtype and actual != dtype:
        raise RequestError(TypeError, f"must have dtype {dtype}, got {actual}", "input")
    if out is not None:
        target = read_target(out, actual)
    memcpy(&stack_shape[1], shape, sizes.input_ndim * sizeof(Py_ssize_t))
    stack_shape[0] = cnp.PyArray_DIM(array, 0) if cnp.PyArray_NDIM(array) else 0
    if not has_shape(array, sizes.input_ndim + 1, stack_shape):
        wanted = ", ".join(map(str, as_tuple(shape, sizes.input_ndim)))
        raise RequestError(ValueError, f"must have shape (n, {wanted}), got {(<object>array).shape}", "input")
    plan_stack(&stacked, sizes, stack_shape[0])
    if padding:  # the axes of extent 1 that pad the shape come after the first axis
        for k in range(sizes.ndim + 1):
            strides[k] = cnp.PyArray_STRIDE(array, k - padding if k > padding else 0)
        array = array_upon(array, sizes.ndim + 1, stacked.sizes.shape, strides, actual, cnp.PyArray_DATA(array), 0)
    return write_result(&stacked, actual, array, NULL, target, threads)
