"""A plan and its source -> an array that holds the tiling, or a region of it; a plan and many sources -> one array that
holds all tilings. The array is new, or the caller's.

First, memory is allocated and the number of threads is read: other code may run meanwhile. Then the input and `out` are
checked (see arguments.pyx), and the bytes are written.
"""

import math

import numpy

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE

from tilecore._core.numpy_api cimport MAX_RANK, PY_SSIZE_T_MAX, PyDataType_REFCHK
from tilecore._core.plan.plan cimport Bounds, Plan, Sizes, input_shape, plan_stack, sizes_check, sizes_init
from tilecore._core.request.arguments cimport (
    blank_itemsize, check_out, has_shape, is_blank, shape_error, share_bytes,
)
from tilecore._core.request.integers cimport as_tuple, read_integers, read_signed
from tilecore._core.request.array_refs cimport ArrayRef, ref_at, ref_array
from tilecore._core.resources.memory cimport check_size, new_array, no_memory_error
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.regions cimport write_region
from tilecore._core.write.signals cimport raise_pending
from tilecore._core.write.tiling cimport (
    TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, Mode, choose_mode, run_task, simple_mode, write_tiling,
)

from tilecore._core.request.errors import RequestError

cnp.import_array()


cdef blank_bytes(tuple shape, cnp.dtype dtype):
    """The bytes of a result of blank strings, as NumPy makes them strings of length 1."""
    return math.prod(shape) * blank_itemsize(dtype)


cdef cnp.ndarray blank_strings(tuple shape, cnp.dtype dtype):
    nbytes = blank_bytes(shape, dtype)
    check_size(min(nbytes, PY_SSIZE_T_MAX))
    try:
        return numpy.zeros(shape, dtype)
    except (MemoryError, ValueError):
        raise no_memory_error(nbytes) from None


# ---------------------------------------------------------------- one source, or a list of them

cdef struct Call:
    const Plan *plan            # of one source
    Py_ssize_t n                # sources
    const char *refs            # an ArrayRef of each, `pitch` bytes apart: cut off after the strides of its axes
    Py_ssize_t pitch
    ArrayRef target             # of the first source's result
    Py_ssize_t step             # bytes to the next result
    const Py_ssize_t *start     # of a region, or NULL
    const Py_ssize_t *shape     # of one result
    Py_ssize_t nbytes           # of one result
    Mode mode


cdef cnp.ndarray write_result(const Plan *plan, cnp.dtype dtype, sources, const Bounds *bounds, cnp.ndarray out,
                              int threads):
    """Return the tiling of an array of `dtype`, or its region `bounds`; of a list of arrays, all tilings in one array.

    The result is `out`, as read_out returned it, or a new array for None.
    """
    cdef const Sizes *sizes = &plan.sizes
    cdef Plan stacked
    cdef Call call
    cdef ArrayRef source
    cdef Py_ssize_t region_shape[MAX_RANK + 1]
    cdef const Py_ssize_t *shape = &sizes.output[0]
    cdef Py_ssize_t nbytes = sizes.nbytes, i
    cdef bint is_list = PyList_CheckExact(sources), is_new = out is None, prefaulted = True
    cdef bint has_references = PyDataType_REFCHK(dtype)
    cdef bytes _refs  # kept until all is written
    cdef int status
    call.plan, call.n, call.pitch, call.step, call.start = plan, 1, 0, 0, NULL
    if is_list:
        call.n = PyList_GET_SIZE(sources)
        plan_stack(&stacked, sizes, call.n)
        sizes = &stacked.sizes
        shape = &sizes.output[0]
        nbytes = sizes.nbytes
    elif bounds != NULL:
        call.start = &bounds.start[0]
        shape = region_shape
        nbytes = measure_region(plan, bounds, region_shape)
    if is_new and nbytes == 0 and is_blank(dtype):
        out = blank_strings(as_tuple(shape, sizes.ndim), dtype)
    elif is_new:
        out = new_array(sizes.ndim, <Py_ssize_t *>shape, dtype, nbytes, &prefaulted)
    if nbytes >= TILECORE_NOGIL_BYTES and not has_references:
        call.mode = choose_mode(nbytes, threads, prefaulted)
    else:
        call.mode = simple_mode(1, False)
    # The arrays are checked last: no other code runs until the bytes are written.
    if is_list:
        _refs = ref_arrays(&call, sources)
    else:
        if not has_shape(sources, plan.sizes.input_ndim, input_shape(&plan.sizes)):
            raise RequestError(ValueError, "changed its shape during the call", "input")
        ref_array(&source, sources)
        call.refs = <const char *>&source
    if is_new:
        ref_array(&call.target, out)
    else:
        check_out(out, shape, sizes.ndim, sizes.itemsize, &call.target)
        for i in range(call.n):
            if share_bytes(ref_of(&call, i), input_shape(&plan.sizes), &call.target, shape, sizes.itemsize):
                name = f"arrays[{i}]" if is_list else "the input"
                raise RequestError(ValueError, f"must not share memory with {name}", "out")
    if nbytes == 0:
        if not is_new and cnp.PyArray_NBYTES(out):  # `out` has strings of length 1, the input of length 0
            (<object>out).fill((<object>out.descr).type())
        return out
    call.shape, call.nbytes = shape, nbytes
    if is_list:
        narrow_target(&call)
    if has_references and not (is_new and can_be_counted(dtype)):
        for i in range(call.n):
            copy_references(&plan.sizes, sources[i] if is_list else sources, ref_of(&call, i), out, &call.target,
                            call.start, call.shape)
            call.target.data += call.step
    elif has_references or nbytes < TILECORE_NOGIL_BYTES:
        write_range(&call, 0, call.n, &call.mode)
        if has_references and is_list:
            count_references(out, &call.target, 0, out)
        elif has_references:
            count_references(sources, &source, sizes.copies if call.start == NULL else 0, out)
    else:
        with nogil:
            status = write_all(&call)
        if status < 0:
            raise_pending()
    return out


cdef inline const ArrayRef *ref_of(const Call *call, Py_ssize_t i) noexcept nogil:
    return <const ArrayRef *>(call.refs + i * call.pitch)


cdef bytes ref_arrays(Call *call, list arrays):
    """Return the ArrayRef of each array, which must have the plan's shape."""
    cdef const Sizes *sizes = &call.plan.sizes
    cdef cnp.ndarray array
    cdef bytes refs
    cdef Py_ssize_t i
    call.pitch = sizeof(ArrayRef) - (MAX_RANK - sizes.input_ndim) * sizeof(Py_ssize_t)
    try:
        refs = PyBytes_FromStringAndSize(NULL, call.n * call.pitch)
    except MemoryError:
        raise RequestError(MemoryError, f"no memory to note where {call.n} arrays lie") from None
    call.refs = PyBytes_AS_STRING(refs)
    for i in range(call.n):
        array = <cnp.ndarray>arrays[i]
        if not has_shape(array, sizes.input_ndim, input_shape(sizes)):
            raise shape_error(array, sizes.input_ndim, input_shape(sizes), "must have", f"arrays[{i}]")
        ref_array(<ArrayRef *>ref_of(call, i), array)
    return refs


cdef void narrow_target(Call *call) noexcept:
    """Narrow `target` from the array of all results to the first result: without the first axis."""
    cdef ArrayRef whole = call.target
    call.shape, call.nbytes = call.shape + 1, call.plan.sizes.nbytes
    call.step = call.nbytes if whole.contiguous else whole.strides[0]
    ref_at(&call.target, whole.data, NULL if whole.contiguous else &whole.strides[1], whole.ndim - 1, call.shape,
           call.plan.sizes.itemsize)


cdef int write_all(Call *call) noexcept nogil:
    """Write all results; return 0, or -1 if a signal handler raised. Threads take whole results, or parts if large."""
    if call.n == 1 or call.mode.threads == 1 or call.nbytes >= TILECORE_THREAD_BYTES:
        return write_range(call, 0, call.n, &call.mode)
    return run_task(write_some, call, call.n, call.n * call.nbytes, &call.mode)


cdef void write_some(void *call, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Mode mode = simple_mode(1, (<const Call *>call).mode.prefaulted)
    write_range(<const Call *>call, first, last, &mode)


cdef inline int write_range(const Call *call, Py_ssize_t first, Py_ssize_t last, Mode *mode) noexcept nogil:
    """Write the results numbered first to last - 1; return as write_all."""
    cdef ArrayRef target
    cdef Py_ssize_t i
    if last - first == 1 and first == 0:
        return write_one(call, ref_of(call, 0), &call.target, mode)
    target = call.target
    target.data += first * call.step
    for i in range(first, last):
        if write_one(call, ref_of(call, i), &target, mode) < 0:
            return -1
        target.data += call.step
    return 0


cdef inline int write_one(const Call *call, const ArrayRef *source, const ArrayRef *target, Mode *mode) noexcept nogil:
    if call.start == NULL:
        return write_tiling(call.plan, source, target, mode)
    return write_region(&call.plan.sizes, source, target, call.start, call.shape, call.nbytes, mode)


# ---------------------------------------------------------------- bounds

cdef int read_bounds(Bounds *bounds, start, stop, bint signed) except -1:
    """Fill `bounds`, before the array is inspected: reading may run code that changes the array."""
    if signed:
        bounds.starts = read_signed(start, bounds.start, "start")
        bounds.stops = read_signed(stop, bounds.stop, "stop")
    else:
        bounds.starts = read_integers(start, bounds.start, "start", 0)
        bounds.stops = read_integers(stop, bounds.stop, "stop", 0)
    return 0


cdef Py_ssize_t measure_region(const Plan *plan, const Bounds *bounds, Py_ssize_t *shape) except -1:
    """Check that a region lies in the tiling, or in the endless plane; fill `shape`, and return the region's bytes."""
    cdef const Sizes *sizes = &plan.sizes
    cdef Sizes region
    cdef Py_ssize_t first, last
    cdef int k, status
    if bounds.starts != sizes.ndim or bounds.stops != sizes.ndim:
        name, n = ("stop", bounds.stops) if bounds.starts == sizes.ndim else ("start", bounds.starts)
        axes = "the input" if plan.endless else f"the result's shape {as_tuple(sizes.output, sizes.ndim)}"
        raise RequestError(ValueError, f"must have {sizes.ndim} entries, one for each axis of {axes}, got {n}", name)
    for k in range(sizes.ndim):
        first, last = bounds.start[k], bounds.stop[k]
        if plan.endless:
            check_axis_of_plane(k, sizes.shape[k], first, last)
        elif not first <= last <= sizes.output[k]:
            raise RequestError(ValueError, f"expected 0 <= start <= stop <= {sizes.output[k]} on axis {k}, got "
                               f"start {first}, stop {last}")
        shape[k] = last - first
    status = sizes_init(&region, sizes.ndim, shape, 0, NULL, sizes.itemsize)
    sizes_check(&region, status)
    return region.nbytes


cdef int check_axis_of_plane(int k, Py_ssize_t extent, Py_ssize_t first, Py_ssize_t last) except -1:
    if first > last:
        raise RequestError(ValueError, f"expected start <= stop on axis {k}, got start {first}, stop {last}")
    if first < 0 and last > PY_SSIZE_T_MAX + first:
        raise RequestError(ValueError, f"axis {k} overflows: from {first} to {last} are more than "
                           f"{PY_SSIZE_T_MAX} elements")
    if first < last and extent == 0:
        raise RequestError(ValueError, f"axis {k} of the input is empty, but the region has "
                           f"{last - first} elements along it")
    return 0
