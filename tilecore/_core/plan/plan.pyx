"""Shape, repeats and itemsize -> checked sizes.

After these checks every count and every offset fits 64 bits, so the functions that use the sizes cannot fail: they are
`noexcept nogil`.
"""

from tilecore._core.request.errors import RequestError

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX
from tilecore._core.request.integers cimport as_tuple


cdef int sizes_init(Sizes *sizes, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                    Py_ssize_t itemsize) noexcept nogil:
    """Fill `sizes`; return a SizesStatus. Both ranks must be at most MAX_RANK, and no extent negative.

    As in NumPy, an empty result is an error if the product of its non-zero extents overflows.
    """
    cdef Py_ssize_t k, rank = ndim if ndim > nreps else nreps, padding = rank - ndim, spared = rank - nreps
    cdef Py_ssize_t count = 1, elements = 1, copies = 1, extent, repeat, output, nbytes
    cdef bint empty = False, failed = False
    sizes.ndim, sizes.input_ndim, sizes.itemsize = <int>rank, ndim, itemsize
    for k in range(rank):  # one loop, in registers: several loops may take three times as long
        extent = shape[k - padding] if k >= padding else 1
        repeat = repeats[k - spared] if k >= spared else 1
        failed |= tilecore_multiply(extent, repeat, &output) | (repeat < 0)
        sizes.shape[k], sizes.repeats[k], sizes.output[k] = extent, repeat, output
        if output:
            failed |= tilecore_multiply(count, output, &count)
            elements *= extent
            copies *= repeat
        else:
            empty = True
    failed |= tilecore_multiply(count, itemsize, &nbytes)
    if failed:
        return find_fault(sizes)
    sizes.nbytes = 0 if empty else nbytes
    sizes.input_nbytes = 0 if empty else elements * itemsize
    sizes.copies = 0 if empty else copies
    return SIZES_OK


cdef int find_fault(Sizes *sizes) noexcept nogil:
    """Return what is wrong with `sizes`, whose axes are set: a negative repeat first, then the overflow of an axis, of
    the elements, of the bytes. Set `axis` to the first one at fault.
    """
    cdef Py_ssize_t count = 1, product
    cdef int k, status = SIZES_BYTES_OVERFLOW
    for k in range(sizes.ndim):
        if sizes.repeats[k] < 0:
            sizes.axis = k
            return SIZES_NEGATIVE
        if tilecore_multiply(sizes.shape[k], sizes.repeats[k], &product):
            if status != SIZES_AXIS_OVERFLOW:
                status = SIZES_AXIS_OVERFLOW
                sizes.axis = k
        elif product and tilecore_multiply(count, product, &count) and status == SIZES_BYTES_OVERFLOW:
            status = SIZES_COUNT_OVERFLOW
            sizes.axis = k
    return status


cdef int sizes_check(const Sizes *sizes, int status) except -1:
    """Raise the RequestError for a `status` of sizes_init other than SIZES_OK."""
    cdef int k = sizes.axis
    if status == SIZES_OK:
        return 0
    if status == SIZES_NEGATIVE:  # from C; read_generic refuses Python's
        raise RequestError(ValueError, f"must not be negative, got {sizes.repeats[k]}", "repeats", k)
    if status == SIZES_AXIS_OVERFLOW:
        raise RequestError(ValueError, f"axis {k} overflows: {sizes.shape[k]} * {sizes.repeats[k]} is more than "
                           f"{PY_SSIZE_T_MAX}")
    output = as_tuple(sizes.output, sizes.ndim)
    if status == SIZES_COUNT_OVERFLOW:
        raise RequestError(ValueError, f"the result would have more than {PY_SSIZE_T_MAX} elements: its shape "
                           f"{output} overflows at axis {sizes.axis}")
    raise RequestError(ValueError, f"the result would have more than {PY_SSIZE_T_MAX} bytes: its shape is {output}, "
                       f"with {sizes.itemsize} bytes per element")


cdef int plan_stack(Plan *stacked, const Sizes *sizes, Py_ssize_t n) except -1:
    """Fill `stacked` for a stack of `n` arrays: one more axis in front, which is not repeated."""
    cdef Py_ssize_t shape[MAX_RANK]
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef int k, status
    if sizes.ndim == MAX_RANK:
        raise RequestError(ValueError, f"the result would have {sizes.ndim + 1} axes, more than {MAX_RANK}, NumPy's "
                           "largest rank")
    shape[0] = n
    repeats[0] = 1
    for k in range(sizes.ndim):
        shape[k + 1] = sizes.shape[k]
        repeats[k + 1] = sizes.repeats[k]
    status = plan_init(stacked, sizes.ndim + 1, shape, sizes.ndim + 1, repeats, sizes.itemsize)
    return sizes_check(&stacked.sizes, status)
