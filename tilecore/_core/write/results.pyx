"""A plan and a source, or a list of them -> an array that holds the result: a new array, or the caller's.

Nine results in ten are new and small. Creating the array takes most of their time: `make_small` does it and writes in
one step, without a nest and without workers (`make_packed` does it for a small source in another order). `make_result`
tries that, and then `make_any`, which makes all others:

    allocate        a new array, unless there is `out`; other code may run meanwhile
    read_options    the number of threads; other code may run meanwhile
    look            where the arrays lie; the last checks of the sources' shapes and of `out` (see arguments.pyx)
    write           bytes, or items that hold references
"""

import numpy

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE

from tilecore._core.config cimport TILECORE_ARRAYS, TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES
from tilecore._core.numpy_api cimport MAX_RANK, PyArray_IS_C_CONTIGUOUS, PyDataType_REFCHK, try_array
from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, next_step
from tilecore._core.plan.plan cimport Plan, has_input_shape, input_shape, is_small, plan_init, plan_many, plan_tiling
from tilecore._core.request.arguments cimport check_out, shape_error
from tilecore._core.request.overlaps cimport share_bytes
from tilecore._core.resources.memory cimport max_bytes, new_array
from tilecore._core.strided_arrays cimport StridedArray, locate_array, locate_data
from tilecore._core.resources.processor cimport kernels, packs_items, tilecore_gather
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.stores cimport ORDINARY
from tilecore._core.write.tiling cimport (
    WriteOptions, check_signals, check_status, fill_options, read_options, run_task, write_tiling,
)

from tilecore._core.request.errors import RequestError, shape_changed

cnp.import_array()


cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass

    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)


cdef enum:
    PACKED_BYTES = 4096     # of a source in another order: it is packed on the stack


cdef cnp.ndarray tile_or_none(cnp.ndarray array, int n, const Py_ssize_t *repeats, Py_ssize_t most_elements):
    """The tiling by `n` repeats, as read_fast returns it; None if anything is wrong, for the caller to find out.

    If `most_elements` is not 0: None also for a result that is larger or empty. A function of its own, so that no plan
    is on the stack of `tile` while that runs the caller's code: it may call `tile` again, level upon level.
    """
    cdef Plan plan
    if n < 0 or not plan_init(&plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), n, repeats,
                              cnp.PyArray_ITEMSIZE(array)):
        return None
    if most_elements and not (plan.nbytes and plan.nbytes // plan.itemsize <= most_elements):
        return None
    cdef cnp.ndarray result = make_small(&plan, array)
    if result is not None:
        return result
    try:
        return make_any(&plan, array, None, 0)
    except RequestError:
        return None


cdef cnp.ndarray make_small(const Plan *plan, cnp.ndarray array):
    """A new array with the tiling, if that is small and of plain bytes; else None. Raises no error."""
    cdef cnp.ndarray result
    if (not is_small(plan) or plan.nbytes > max_bytes
            or (not 0 <= cnp.PyArray_TYPE(array) < cnp.NPY_OBJECT and PyDataType_REFCHK(array.descr))):
        return None  # a dtype with references; for numbers, most arrays, descr is not read
    if not PyArray_IS_C_CONTIGUOUS(array):
        return make_packed(plan, array)
    result = try_array(plan.ndim, plan.output_shape, array.descr, NULL, 0)
    # Other code may have run meanwhile. Without memory, or with another shape, make_any raises the error.
    if result is None or not has_input_shape(array, plan) or not PyArray_IS_C_CONTIGUOUS(array):
        return None
    write_small_result(plan, result, cnp.PyArray_BYTES(array))
    return result


cdef cnp.ndarray make_packed(const Plan *plan, cnp.ndarray array):
    """make_small from a source in another order, which is packed on the stack first."""
    cdef cnp.ndarray result
    cdef char packed[PACKED_BYTES]
    if plan.nbytes // plan.copies > PACKED_BYTES or not packs_items(plan.itemsize):
        return None
    result = try_array(plan.ndim, plan.output_shape, array.descr, NULL, 0)
    if result is None or not has_input_shape(array, plan):  # as in make_small
        return None
    pack_on_stack(packed, array)
    write_small_result(plan, result, packed)
    return result


cdef inline PyThreadState *release_gil(Py_ssize_t nbytes, bint references) noexcept:
    """Release the GIL while so many bytes are written, unless it is needed or that does not pay: then return NULL."""
    return NULL if references or nbytes < TILECORE_NOGIL_BYTES else PyEval_SaveThread()


cdef inline void take_gil(PyThreadState *released) noexcept:
    if released != NULL:
        PyEval_RestoreThread(released)


cdef inline void write_small_result(const Plan *plan, cnp.ndarray result, const char *src) noexcept:
    """Write by the set's kernel: TILECORE_NAME(write_small), isa/small.h."""
    cdef char *dst = cnp.PyArray_BYTES(result)
    cdef PyThreadState *released = release_gil(plan.nbytes, False)
    kernels.write_small(kernels, plan.ndim, plan.shape, plan.repeats, plan.itemsize, dst, src)
    take_gil(released)


cdef void pack_on_stack(char *dst, cnp.ndarray array) noexcept:
    """Copy the items to `dst`, in C order: the last two axes by tilecore_gather.

    So few items are copied in less time than `choose_packer`, panels.pyx, needs to choose a kernel.
    """
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


# ---------------------------------------------------------------- from one source

cdef cnp.ndarray make_result(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads):
    """Return the plan's result for an array: `out`, as read_out returned it, or a new array for None."""
    cdef cnp.ndarray small = make_small(plan, array) if out is None else None
    return make_any(plan, array, out, threads) if small is None else small


cdef cnp.ndarray make_any(const Plan *plan, cnp.ndarray array, cnp.ndarray out, int threads):
    """make_result for all that make_small does not make."""
    cdef cnp.dtype dtype = array.descr
    cdef bint is_new = out is None, prefaulted = True, references = PyDataType_REFCHK(dtype)
    cdef StridedArray source, target
    cdef WriteOptions options
    cdef PyThreadState *released
    cdef int status
    if is_new:
        out = allocate(plan, dtype, &prefaulted)
    read_options(&options, plan.nbytes, threads, prefaulted, references)

    # No other code runs from here until the bytes are written.
    if not has_input_shape(array, plan):
        raise shape_changed()
    locate_array(&source, array)
    if is_new:
        locate_array(&target, out)
    else:
        check_out(out, plan.output_shape, plan.ndim, plan.itemsize, &target)
        if share_bytes(&source, input_shape(plan), &target, plan.output_shape, plan.itemsize):
            raise RequestError(ValueError, "must not share memory with the input", "out")

    if plan.nbytes == 0:
        return out
    if references and not (is_new and can_be_counted(dtype)):
        copy_references(plan, array, &source, out, &target)
        return out
    released = release_gil(plan.nbytes, references)
    status = write_tiling(plan, &source, &target, &options)
    take_gil(released)
    check_status(status)
    if references:
        count_references(array, plan.copies, out)
    return out


cdef cnp.ndarray allocate(const Plan *plan, cnp.dtype dtype, bint *prefaulted):
    """Return a new array for the result. Garbage may be collected, so other code may run."""
    cdef Plan longer
    if dtype.itemsize or dtype.kind not in b"SU":
        return new_array(plan.ndim, <Py_ssize_t *>plan.output_shape, dtype, plan.nbytes, prefaulted)
    # NumPy makes strings of length 0 strings of length 1. Not by numpy.dtype((type, 1)), which runs Python code.
    dtype = numpy.dtype((<object>dtype).str[:2] + "1")
    plan_tiling(&longer, plan.ndim, plan.output_shape, 0, NULL, dtype.itemsize)
    array = new_array(plan.ndim, longer.output_shape, dtype, longer.nbytes, prefaulted)
    cnp.PyArray_FILLWBYTE(array, 0)
    return array


# ---------------------------------------------------------------- from a list of sources

# The sources are never merged into one strided array. Each step is as in make_any, for all of them.

cdef struct Batch:
    const Plan *plan            # of each source
    Py_ssize_t n_sources
    const char *places          # the StridedArrays of the sources, without the strides that are not in use
    Py_ssize_t place_bytes      # of one of them
    StridedArray target         # of the first tiling
    Py_ssize_t target_step      # bytes to the next tiling
    WriteOptions options


cdef cnp.ndarray make_batch(const Plan *plan, cnp.dtype dtype, list sources, cnp.ndarray out, int threads):
    """Return the tilings of all sources: in `out`, as read_out returned it, or in a new array for None."""
    cdef Plan all_plan
    cdef Batch batch
    cdef bint is_new = out is None, prefaulted = True, references = PyDataType_REFCHK(dtype)
    cdef Py_ssize_t i, n = PyList_GET_SIZE(sources)
    cdef PyThreadState *released
    cdef int status
    plan_many(&all_plan, plan, n)
    if is_new:
        out = allocate(&all_plan, dtype, &prefaulted)
    read_options(&batch.options, all_plan.nbytes, threads, prefaulted, references)

    batch.plan, batch.n_sources = plan, n
    _places = locate_list(&batch, sources)  # kept until all is written
    locate_target(&batch, &all_plan, out, is_new)

    if all_plan.nbytes == 0:
        return out
    if references and not (is_new and can_be_counted(dtype)):
        for i in range(n):
            copy_references(plan, sources[i], place_of(&batch, i), out, &batch.target)
            batch.target.data += batch.target_step
        return out
    released = release_gil(all_plan.nbytes, references)
    status = write_by_threads(&batch)
    take_gil(released)
    check_status(status)
    if references:
        count_references(out, 0, out)  # 0: the sources differ, so each item of the result is counted by itself
    return out


cdef bytes locate_list(Batch *batch, list sources):
    """Return the StridedArray of each source, which must have the plan's shape.

    No other code runs from here until the bytes are written.
    """
    cdef const Plan *plan = batch.plan
    cdef cnp.ndarray array
    cdef bytes places
    cdef Py_ssize_t i
    batch.place_bytes = sizeof(StridedArray) - (MAX_RANK - plan.input_ndim) * sizeof(Py_ssize_t)
    try:
        places = PyBytes_FromStringAndSize(NULL, batch.n_sources * batch.place_bytes)
    except MemoryError:
        raise RequestError(MemoryError, f"no memory to note where {batch.n_sources} arrays lie") from None
    batch.places = PyBytes_AS_STRING(places)
    for i in range(batch.n_sources):
        array = <cnp.ndarray>sources[i]
        if not has_input_shape(array, plan):
            raise shape_error(array, plan.input_ndim, input_shape(plan), f"arrays[{i}]")
        locate_array(<StridedArray *>place_of(batch, i), array)
    return places


cdef inline const StridedArray *place_of(const Batch *batch, Py_ssize_t i) noexcept nogil:
    return <const StridedArray *>(batch.places + i * batch.place_bytes)


cdef int locate_target(Batch *batch, const Plan *all_plan, cnp.ndarray out, bint is_new) except -1:
    """Set where the first tiling lies, and how far the next one is from it; check `out`."""
    cdef const Plan *plan = batch.plan
    cdef StridedArray result
    cdef Py_ssize_t i
    if is_new:
        locate_array(&result, out)
    else:
        check_out(out, all_plan.output_shape, all_plan.ndim, plan.itemsize, &result)
        for i in range(batch.n_sources):
            if share_bytes(place_of(batch, i), input_shape(plan), &result, all_plan.output_shape, plan.itemsize):
                raise RequestError(ValueError, f"must not share memory with arrays[{i}]", "out")
    batch.target_step = plan.nbytes if result.contiguous else result.strides[0]
    locate_data(&batch.target, result.data, NULL if result.contiguous else &result.strides[1], plan.ndim,
                plan.output_shape, plan.itemsize)
    return 0


cdef int write_by_threads(Batch *batch) noexcept nogil:
    """Write all tilings; return as write_tiling. Threads take whole ones, or parts if they are large."""
    # From 4 times TILECORE_THREAD_BYTES on, threads write parts of each tiling without waiting long for each other.
    if batch.n_sources == 1 or batch.options.threads == 1 or batch.plan.nbytes >= 4 * TILECORE_THREAD_BYTES:
        return write_range(batch, 0, batch.n_sources, &batch.options)
    return run_task(write_range_task, TILECORE_ARRAYS, ORDINARY, batch, batch.n_sources, batch.options.nbytes,
                    &batch.options)


cdef void write_range_task(void *batch, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const WriteOptions *call_options = &(<const Batch *>batch).options
    cdef WriteOptions options
    fill_options(&options, call_options.nbytes, 1, call_options.prefaulted)
    write_range(<const Batch *>batch, first, last, &options)


cdef int write_range(const Batch *batch, Py_ssize_t first, Py_ssize_t last, WriteOptions *options) noexcept nogil:
    """Write the tilings numbered first to last - 1; return as write_tiling."""
    cdef StridedArray target
    cdef Py_ssize_t i
    target.contiguous = True
    if not batch.target.contiguous:  # else its strides need no copy
        target = batch.target
    target.data = batch.target.data + first * batch.target_step
    for i in range(first, last):
        if (write_tiling(batch.plan, place_of(batch, i), &target, options) < 0
                or check_signals(options, batch.plan.nbytes) < 0):  # write_small does not check
            return -1
        target.data += batch.target_step
    return 0
