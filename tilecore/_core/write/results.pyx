"""A plan and its source -> an array that holds the tiling, or a region of it; a plan and many sources -> one array that
holds all tilings. The array is new, or the caller's.

    measure     the shape of the result, or of the region
    allocate    a new array, unless there is `out`; the number of threads is read, too: other code may run meanwhile
    look        where the arrays lie; the last checks of the sources' shape and of `out` (see arguments.pyx)
    write       bytes, or items that hold references
"""

import numpy

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE

from tilecore._core.numpy_api cimport MAX_RANK, PyDataType_REFCHK
from tilecore._core.plan.plan cimport Plan, Sizes, input_shape, plan_stack, sizes_check, sizes_init
from tilecore._core.plan.regions cimport Bounds, check_bounds
from tilecore._core.request.arguments cimport check_out, has_shape, shape_error
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.overlaps cimport share_bytes
from tilecore._core.request.strided_arrays cimport StridedArray, locate_array, locate_memory
from tilecore._core.resources.memory cimport check_size, new_array, no_memory_error
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.signals cimport check_signals, raise_on_error
from tilecore._core.write.small cimport make_small
from tilecore._core.write.tiling cimport (
    TILECORE_ARRAYS, TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, WriteOptions, choose_options, run_task, simple_options,
    write_region, write_tiling,
)

from tilecore._core.request.errors import RequestError

cnp.import_array()


# ---------------------------------------------------------------- one source, or a list of them

cdef struct Call:
    const Plan *plan            # of one source
    Py_ssize_t n                # sources
    const char *places          # a StridedArray of each, `pitch` bytes apart: only `input_ndim` strides are stored
    Py_ssize_t pitch
    StridedArray source         # if there is one
    StridedArray target         # of all results; then of the first
    Py_ssize_t step             # bytes to the next result
    const Py_ssize_t *start     # of a region, or NULL
    const Py_ssize_t *shape     # of all results; then of one
    int ndim
    Py_ssize_t nbytes
    WriteOptions options
    Plan stacked                # of all sources, or of a region
    Py_ssize_t region[MAX_RANK]


cdef cnp.ndarray write_result(const Plan *plan, cnp.dtype dtype, sources, const Bounds *bounds, cnp.ndarray out,
                              int threads):
    """Return the tiling of an array of `dtype`, or its region `bounds`; of a list of arrays, all tilings in one array.

    The result is `out`, as read_out returned it, or a new array for None.
    """
    cdef Call call
    cdef bint is_new = out is None, prefaulted = True
    measure(&call, plan, sources, bounds)
    if is_new and call.start == NULL and not PyList_CheckExact(sources):
        out = make_small(&call.plan.sizes, sources)
        if out is not None:
            return out
    if is_new:
        out = allocate(&call, dtype, &prefaulted)
    if call.nbytes >= TILECORE_NOGIL_BYTES and not PyDataType_REFCHK(dtype):
        call.options = choose_options(call.nbytes, threads, prefaulted)
    else:
        call.options = simple_options(1, False)
    _places = look(&call, sources, out, is_new)  # kept until all is written
    if call.nbytes == 0:
        return out
    if PyDataType_REFCHK(dtype):
        write_references(&call, sources, out, is_new and can_be_counted(dtype))
    else:
        write_bytes(&call)
    return out


cdef int measure(Call *call, const Plan *plan, sources, const Bounds *bounds) except -1:
    """Begin a call: how many sources, and the shape of the result."""
    cdef const Sizes *sizes = &plan.sizes
    cdef Sizes *region = &call.stacked.sizes
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef bint is_tiling = True
    cdef int k, status
    call.plan, call.n, call.pitch, call.step, call.start = plan, 1, 0, 0, NULL
    if PyList_CheckExact(sources):
        call.n = PyList_GET_SIZE(sources)
        plan_stack(&call.stacked, sizes, call.n)
        sizes = &call.stacked.sizes
    call.shape = &sizes.output[0]
    call.ndim, call.nbytes = sizes.ndim, sizes.nbytes
    if bounds != NULL:
        check_bounds(bounds, sizes.ndim, input_shape(sizes) if plan.endless else call.shape, plan.endless, call.region)
        for k in range(sizes.ndim):  # a region of whole repeats is a tiling
            is_tiling &= sizes.shape[k] > 0 and bounds.start[k] % sizes.shape[k] == call.region[k] % sizes.shape[k] == 0
            repeats[k] = call.region[k] // sizes.shape[k] if is_tiling else 1
        if is_tiling:
            status = sizes_init(region, sizes.input_ndim, input_shape(sizes), sizes.ndim, repeats, sizes.itemsize)
            call.plan = &call.stacked
        else:
            status = sizes_init(region, sizes.ndim, call.region, 0, NULL, sizes.itemsize)
            call.start = &bounds.start[0]
        sizes_check(region, status)
        call.shape = &call.region[0]
        call.nbytes = region.nbytes
    return 0


cdef cnp.ndarray allocate(const Call *call, cnp.dtype dtype, bint *prefaulted):
    """A new array for the result. Garbage may be collected, so other code may run."""
    cdef Sizes sizes
    if dtype.itemsize or dtype.kind not in b"SU":
        return new_array(call.ndim, <Py_ssize_t *>call.shape, dtype, call.nbytes, prefaulted)
    # NumPy makes strings of length 0 strings of length 1. Not by numpy.dtype((type, 1)), which runs Python code.
    dtype = numpy.dtype((<object>dtype).str[:2] + "1")
    sizes_check(&sizes, sizes_init(&sizes, call.ndim, call.shape, 0, NULL, dtype.itemsize))
    check_size(sizes.nbytes)
    try:
        return numpy.zeros(as_tuple(call.shape, call.ndim), dtype)
    except MemoryError:
        raise no_memory_error(sizes.nbytes) from None


cdef bytes look(Call *call, sources, cnp.ndarray out, bint is_new):
    """Look where the arrays lie, and check them. No other code runs from here until the bytes are written.

    Return the memory of a list's StridedArrays.
    """
    cdef const Sizes *sizes = &call.plan.sizes
    cdef bint is_list = PyList_CheckExact(sources)
    cdef bytes places = None
    cdef Py_ssize_t i
    if is_list:
        places = locate_arrays(call, sources)
    else:
        if not has_shape(sources, sizes.input_ndim, input_shape(sizes)):
            raise RequestError(ValueError, "changed its shape during the call", "input")
        locate_array(&call.source, sources)
        call.places = <const char *>&call.source
    if is_new:
        locate_array(&call.target, out)
    else:
        check_out(out, call.shape, call.ndim, sizes.itemsize, &call.target)
        for i in range(call.n):
            if share_bytes(place_of(call, i), input_shape(sizes), &call.target, call.shape, sizes.itemsize):
                name = f"arrays[{i}]" if is_list else "the input"
                raise RequestError(ValueError, f"must not share memory with {name}", "out")
    if is_list and call.nbytes:
        narrow_target(call)
    return places


cdef int write_references(Call *call, sources, cnp.ndarray out, bint as_bytes) except -1:
    cdef bint is_list = PyList_CheckExact(sources)
    cdef Py_ssize_t i
    if not as_bytes:
        for i in range(call.n):
            copy_references(&call.plan.sizes, sources[i] if is_list else sources, place_of(call, i), out, &call.target,
                            call.start, call.shape)
            call.target.data += call.step
        return 0
    write_range(call, 0, call.n, &call.options)
    if is_list:
        return count_references(out, &call.target, 0, out)
    return count_references(sources, &call.source, call.plan.sizes.copies if call.start == NULL else 0, out)


cdef int write_bytes(Call *call) except -1:
    cdef int status
    if call.n * call.nbytes < TILECORE_NOGIL_BYTES:
        return write_range(call, 0, call.n, &call.options)
    with nogil:
        status = write_all(call)
    return raise_on_error(status)


cdef inline const StridedArray *place_of(const Call *call, Py_ssize_t i) noexcept nogil:
    return <const StridedArray *>(call.places + i * call.pitch)


cdef bytes locate_arrays(Call *call, list arrays):
    """Return the StridedArray of each array, which must have the plan's shape."""
    cdef const Sizes *sizes = &call.plan.sizes
    cdef cnp.ndarray array
    cdef bytes places
    cdef Py_ssize_t i
    call.pitch = sizeof(StridedArray) - (MAX_RANK - sizes.input_ndim) * sizeof(Py_ssize_t)
    try:
        places = PyBytes_FromStringAndSize(NULL, call.n * call.pitch)
    except MemoryError:
        raise RequestError(MemoryError, f"no memory to note where {call.n} arrays lie") from None
    call.places = PyBytes_AS_STRING(places)
    for i in range(call.n):
        array = <cnp.ndarray>arrays[i]
        if not has_shape(array, sizes.input_ndim, input_shape(sizes)):
            raise shape_error(array, sizes.input_ndim, input_shape(sizes), "must have", f"arrays[{i}]")
        locate_array(<StridedArray *>place_of(call, i), array)
    return places


cdef void narrow_target(Call *call) noexcept:
    """Narrow `target` from the array of all results to the first result: without the first axis."""
    cdef StridedArray whole = call.target
    call.shape += 1
    call.ndim, call.nbytes = call.ndim - 1, call.plan.sizes.nbytes
    call.step = call.nbytes if whole.contiguous else whole.strides[0]
    locate_memory(&call.target, whole.data, NULL if whole.contiguous else &whole.strides[1], whole.ndim - 1,
                  call.shape, call.plan.sizes.itemsize)


cdef int write_all(Call *call) noexcept nogil:
    """Write all results; return 0, or -1 if a signal handler raised. Threads take whole results, or parts if large."""
    if call.n == 1 or call.options.threads == 1 or call.nbytes >= 4 * TILECORE_THREAD_BYTES:
        return write_range(call, 0, call.n, &call.options)
    return run_task(write_some, TILECORE_ARRAYS, call, call.n, call.n * call.nbytes, &call.options)


cdef void write_some(void *call, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef WriteOptions options = simple_options(1, (<const Call *>call).options.prefaulted)
    write_range(<const Call *>call, first, last, &options)


cdef inline int write_range(const Call *call, Py_ssize_t first, Py_ssize_t last, WriteOptions *options) noexcept nogil:
    """Write the results numbered first to last - 1; return as write_all."""
    cdef StridedArray target
    cdef Py_ssize_t i
    if last - first == 1 and first == 0:
        return write_one(call, place_of(call, 0), &call.target, options)
    target = call.target
    target.data += first * call.step
    for i in range(first, last):
        if (write_one(call, place_of(call, i), &target, options) < 0
                or check_signals(&options.signals, call.nbytes) < 0):  # a small result does not check
            return -1
        target.data += call.step
    return 0


cdef inline int write_one(const Call *call, const StridedArray *source, const StridedArray *target,
                          WriteOptions *options) noexcept nogil:
    if call.start == NULL:
        return write_tiling(call.plan, source, target, options)
    return write_region(&call.plan.sizes, source, target, call.start, call.shape, call.nbytes, options)
