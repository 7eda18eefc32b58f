"""A plan and its source -> an array that holds the tiling, or a region of it; a plan and many sources -> one array that
holds all tilings. The array is new, or the caller's.

    measure     the shape of the result, or of the region
    allocate    a new array, unless there is `out`; the number of threads is read, too: other code may run meanwhile
    look        where the arrays lie; the last checks of the sources' shape and of `out` (see arguments.pyx)
    write       bytes, or items that hold references

The tilings of many sources lie one after the other along the first axis of the result. Sources that lie at a constant
step, in one array, are one source of a plan with one more axis. Others are a list.
"""

import numpy

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE

from tilecore._core.numpy_api cimport MAX_RANK, PyDataType_REFCHK, array_upon
from tilecore._core.plan.plan cimport Plan, input_shape, plan_check, plan_init, plan_stack
from tilecore._core.plan.regions cimport Bounds, check_bounds
from tilecore._core.request.arguments cimport check_out, has_shape, shape_error
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.overlaps cimport share_bytes
from tilecore._core.request.strided_arrays cimport StridedArray, locate_array, locate_memory
from tilecore._core.resources.memory cimport check_size, new_array, no_memory_error
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.processor cimport TILECORE_NOGIL_BYTES
from tilecore._core.write.signals cimport check_signals
from tilecore._core.write.small cimport make_small
from tilecore._core.write.tiling cimport (
    TILECORE_ARRAYS, TILECORE_THREAD_BYTES, WriteOptions, choose_options, run_task, simple_options, write_region,
    write_tiling,
)

from tilecore._core.request.errors import RequestError, shape_changed

cnp.import_array()


cdef struct Call:               # by the step that sets a field
    # measure
    bint is_list                # the sources are a list
    Py_ssize_t n_sources
    const Plan *plan            # of one source
    Py_ssize_t bytes_each       # of the result, by each source
    const Py_ssize_t *start     # of a region, or NULL
    const Py_ssize_t *shape     # of the result
    int ndim
    Py_ssize_t nbytes
    Plan region_plan            # of a region: as a tiling, if it is one of whole repeats
    Py_ssize_t region_shape[MAX_RANK]
    # allocate
    WriteOptions options
    # look
    const char *places          # the StridedArrays of the sources, without the strides that are not in use
    Py_ssize_t place_bytes      # of one of them
    StridedArray source         # if there is no list of them
    StridedArray target         # of the first tiling
    Py_ssize_t target_step      # bytes to the next tiling


cdef cnp.ndarray make_batch(const Plan *plan, cnp.dtype dtype, sources, cnp.ndarray out, int threads):
    """Return the tilings of a list of arrays, or of an array of their shape with one more axis in front."""
    cdef Plan stack
    if PyList_CheckExact(sources):
        plan_stack(&stack, plan, PyList_GET_SIZE(sources))
        return make_results(plan, &stack, dtype, sources, NULL, out, threads)
    plan_stack(&stack, plan, cnp.PyArray_DIM(sources, 0))
    return make_result(&stack, dtype, pad_stack(&stack, sources), NULL, out, threads)


cdef cnp.ndarray make_results(const Plan *plan, const Plan *whole_plan, cnp.dtype dtype, sources, const Bounds *bounds,
                              cnp.ndarray out, int threads):
    """Return the tiling of an array, or its region `bounds`; of a list of arrays, all tilings.

    They are written to `out`, as read_out returned it, or to a new array for None. `whole_plan` is that of all tilings.
    """
    cdef Call call
    cdef bint is_new = out is None
    measure(&call, plan, whole_plan, sources, bounds)
    if is_new and bounds != NULL and call.start == NULL:  # a region that is a tiling
        out = make_small(call.plan, sources)
        if out is not None:
            return out
    out = allocate(&call, dtype, out, threads)
    _places = look(&call, sources, out, is_new)  # kept until all is written
    if call.nbytes == 0:
        return out
    if PyDataType_REFCHK(dtype):
        write_references(&call, sources, out, is_new and can_be_counted(dtype))
    else:
        write_bytes(&call)
    return out


cdef cnp.ndarray pad_stack(const Plan *stack, cnp.ndarray array):
    """A stack with the axes that pad a source after its first axis. The view survives changes of the array's shape."""
    cdef Py_ssize_t strides[MAX_RANK]
    cdef int k, padding = stack.ndim - cnp.PyArray_NDIM(array)
    if padding == 0:
        return array
    for k in range(stack.ndim):
        strides[k] = cnp.PyArray_STRIDE(array, k - padding if k > padding else 0)
    return array_upon(array, stack.ndim, stack.shape, strides, array.descr, cnp.PyArray_DATA(array), 0)


cdef int measure(Call *call, const Plan *plan, const Plan *whole_plan, sources, const Bounds *bounds) except -1:
    """Begin a call: the output of `whole_plan`, or a region of it."""
    cdef Plan *region_plan = &call.region_plan
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef bint is_tiling = True
    cdef int k, status
    call.is_list = PyList_CheckExact(sources)
    call.n_sources = PyList_GET_SIZE(sources) if call.is_list else 1
    call.plan, call.bytes_each, call.start = plan, plan.nbytes, NULL
    call.ndim, call.nbytes = whole_plan.ndim, whole_plan.nbytes
    call.shape = &whole_plan.output[0]
    if bounds == NULL:
        return 0
    check_bounds(bounds, plan.ndim, input_shape(plan) if bounds.periodic else call.shape, call.region_shape)
    call.shape = &call.region_shape[0]
    for k in range(plan.ndim):  # a region of whole repeats is a tiling
        is_tiling &= plan.shape[k] > 0 and bounds.start[k] % plan.shape[k] == call.shape[k] % plan.shape[k] == 0
        repeats[k] = call.shape[k] // plan.shape[k] if is_tiling else 1
    if is_tiling:
        status = plan_init(region_plan, plan.input_ndim, input_shape(plan), plan.ndim, repeats, plan.itemsize)
        call.plan = region_plan
    else:
        status = plan_init(region_plan, plan.ndim, call.shape, 0, NULL, plan.itemsize)
        call.start = &bounds.start[0]
    plan_check(region_plan, status)
    call.bytes_each = call.nbytes = region_plan.nbytes
    return 0


cdef cnp.ndarray allocate(Call *call, cnp.dtype dtype, cnp.ndarray out, int threads):
    """Return `out`, or a new array for None. Garbage may be collected, so other code may run."""
    cdef bint prefaulted = True
    if out is None:
        out = new_result(call, dtype, &prefaulted)
    if call.nbytes >= TILECORE_NOGIL_BYTES and not PyDataType_REFCHK(dtype):
        call.options = choose_options(call.nbytes, threads, prefaulted)
    else:
        call.options = simple_options(1, False)
    return out


cdef cnp.ndarray new_result(const Call *call, cnp.dtype dtype, bint *prefaulted):
    cdef Plan plan
    if dtype.itemsize or dtype.kind not in b"SU":
        return new_array(call.ndim, <Py_ssize_t *>call.shape, dtype, call.nbytes, prefaulted)
    # NumPy makes strings of length 0 strings of length 1. Not by numpy.dtype((type, 1)), which runs Python code.
    dtype = numpy.dtype((<object>dtype).str[:2] + "1")
    plan_check(&plan, plan_init(&plan, call.ndim, call.shape, 0, NULL, dtype.itemsize))
    check_size(plan.nbytes)
    try:
        return numpy.zeros(as_tuple(call.shape, call.ndim), dtype)
    except MemoryError:
        raise no_memory_error(plan.nbytes) from None


cdef bytes look(Call *call, sources, cnp.ndarray out, bint is_new):
    """Look where the arrays lie, and check them. No other code runs from here until the bytes are written.

    Return the memory of a list's StridedArrays.
    """
    cdef const Plan *plan = call.plan
    cdef bytes places = None
    cdef StridedArray whole
    cdef StridedArray *target = &whole if call.is_list else &call.target
    cdef Py_ssize_t i
    if call.is_list:
        places = locate_list(call, sources)
    elif has_shape(sources, plan.input_ndim, input_shape(plan)):
        locate_array(&call.source, sources)
        call.places, call.place_bytes, call.target_step = <const char *>&call.source, 0, 0
    else:
        raise shape_changed()
    if is_new:
        locate_array(target, out)
    else:
        check_out(out, call.shape, call.ndim, plan.itemsize, target)
        for i in range(call.n_sources):
            if share_bytes(place_of(call, i), input_shape(plan), target, call.shape, plan.itemsize):
                name = f"arrays[{i}]" if call.is_list else "the input"
                raise RequestError(ValueError, f"must not share memory with {name}", "out")
    if call.is_list:
        call.target_step = call.bytes_each if whole.contiguous else whole.strides[0]
        locate_memory(&call.target, whole.data, NULL if whole.contiguous else &whole.strides[1], call.ndim - 1,
                      &call.shape[1], plan.itemsize)
    return places


cdef bytes locate_list(Call *call, list arrays):
    """Return the StridedArray of each array, which must have the plan's shape."""
    cdef const Plan *plan = call.plan
    cdef cnp.ndarray array
    cdef bytes places
    cdef Py_ssize_t i
    call.place_bytes = sizeof(StridedArray) - (MAX_RANK - plan.input_ndim) * sizeof(Py_ssize_t)
    try:
        places = PyBytes_FromStringAndSize(NULL, call.n_sources * call.place_bytes)
    except MemoryError:
        raise RequestError(MemoryError, f"no memory to note where {call.n_sources} arrays lie") from None
    call.places = PyBytes_AS_STRING(places)
    for i in range(call.n_sources):
        array = <cnp.ndarray>arrays[i]
        if not has_shape(array, plan.input_ndim, input_shape(plan)):
            raise shape_error(array, plan.input_ndim, input_shape(plan), "must have", f"arrays[{i}]")
        locate_array(<StridedArray *>place_of(call, i), array)
    return places


cdef inline const StridedArray *place_of(const Call *call, Py_ssize_t i) noexcept nogil:
    return <const StridedArray *>(call.places + i * call.place_bytes)


cdef int write_references(Call *call, sources, cnp.ndarray out, bint as_bytes) except -1:
    cdef StridedArray target
    cdef Py_ssize_t i
    if not as_bytes:
        target = call.target
        for i in range(call.n_sources):
            copy_references(call.plan, sources[i] if call.is_list else sources, place_of(call, i), out, &target,
                            call.start, call.shape + (1 if call.is_list else 0))  # of one tiling
            target.data += call.target_step
        return 0
    write_range(call, 0, call.n_sources, &call.options)
    if call.is_list or call.start != NULL:
        return count_references(out, &call.target, 0, out)
    return count_references(sources, &call.source, call.plan.copies, out)


cdef int write_bytes(Call *call) except -1:
    """Write all tilings. Threads take whole ones, or parts if they are large."""
    cdef int status
    if call.nbytes < TILECORE_NOGIL_BYTES:
        return write_range(call, 0, call.n_sources, &call.options)
    with nogil:
        # From 4 times the bound on, threads write parts of each tiling without waiting long for each other.
        if call.n_sources == 1 or call.options.threads == 1 or call.bytes_each >= 4 * TILECORE_THREAD_BYTES:
            status = write_range(call, 0, call.n_sources, &call.options)
        else:
            status = run_task(write_range_task, TILECORE_ARRAYS, call, call.n_sources, call.nbytes, &call.options)
    return status  # -1: a signal handler raised


cdef void write_range_task(void *call, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef WriteOptions options = simple_options(1, (<const Call *>call).options.prefaulted)
    write_range(<const Call *>call, first, last, &options)


cdef inline int write_range(const Call *call, Py_ssize_t first, Py_ssize_t last, WriteOptions *options) noexcept nogil:
    """Write the tilings numbered first to last - 1; return 0, or -1 if a signal handler raised."""
    cdef StridedArray target
    cdef Py_ssize_t i
    if call.n_sources == 1:
        return write_one(call, place_of(call, 0), &call.target, options)
    target = call.target
    target.data += first * call.target_step
    for i in range(first, last):
        if (write_one(call, place_of(call, i), &target, options) < 0
                or check_signals(&options.signals, call.bytes_each) < 0):  # a small tiling does not check
            return -1
        target.data += call.target_step
    return 0


cdef inline int write_one(const Call *call, const StridedArray *source, const StridedArray *target,
                          WriteOptions *options) noexcept nogil:
    if call.start == NULL:
        return write_tiling(call.plan, source, target, options)
    return write_region(call.plan, source, target, call.start, call.shape, call.nbytes, options)
