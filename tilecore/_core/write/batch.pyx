"""One plan and many arrays of its shape -> one array that holds the tiling of each.

The arrays are a *stack*, one array (n, *shape), or a list of arrays that lie anywhere.

    stack    written as one array is, by a plan with one more axis in front, which does not repeat
    list     the place of each array is noted in a few words; then all are written in one go

Images of one size nearly always have the same strides, so the loops that write one are prepared once, and again
only where the strides change. Threads share small results by arrays, and a large one by its blocks.

As everywhere (arguments.pyx), all that can run the caller's code comes first: lists are copied, items converted,
dtypes compared. Shapes are looked at after that.
"""

from tilecore._core.request.refusals import Refusal

cimport numpy as cnp
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_SIZE
from libc.string cimport memcmp, memcpy

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_Check, PyArray_CheckExact, PyDataType_REFCHK, array_upon
from tilecore._core.plan.nest cimport Nest, nest_init
from tilecore._core.plan.plan cimport Plan, Sizes, plan_init, sizes_check
from tilecore._core.request.arguments cimport (
    check_out, extents, has_shape, plain_array, read_target, shape_refusal, share_bytes,
)
from tilecore._core.request.integers cimport as_tuple
from tilecore._core.request.places cimport Place, place_at, place_note, place_strides
from tilecore._core.write.execute cimport (
    TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, Job, Mode, choose_job, execute_job, execute_units, execute_watched,
)
from tilecore._core.write.whole cimport choose_mode
from tilecore._core.write.references cimport can_be_counted, copy_references, count_references
from tilecore._core.write.results cimport emptied, new_result, write_result
from tilecore._core.write.signals cimport Watch, raise_pending, watch_begin

cnp.import_array()


cdef cnp.ndarray write_batch(const Plan *plan, cnp.dtype dtype, arrays, out, int threads):
    """The tilings of `arrays`, by a plan for `dtype`, in `out` or in a new array."""
    if isinstance(arrays, (list, tuple)):
        return write_list(plan, dtype, list(arrays), out, threads)
    return write_stack(plan, dtype, arrays, out, threads)


cdef int stacked_init(Plan *stacked, const Sizes *sizes, Py_ssize_t n) except -1:
    """The plan for a stack of `n`, with the axes of extent 1 that the plan puts in front of each array's."""
    cdef Py_ssize_t shape[MAX_RANK]
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef int k, status
    if sizes.ndim == MAX_RANK:
        raise Refusal(ValueError, f"the result would have {sizes.ndim + 1} axes, more than {MAX_RANK}, NumPy's "
                      "largest rank")
    shape[0] = n
    repeats[0] = 1
    for k in range(sizes.ndim):
        shape[k + 1] = sizes.shape[k]
        repeats[k + 1] = sizes.repeats[k]
    status = plan_init(stacked, sizes.ndim + 1, shape, sizes.ndim + 1, repeats, sizes.itemsize)
    return sizes_check(&stacked.sizes, status)


# ---------------------------------------------------------------- a stack

cdef cnp.ndarray write_stack(const Plan *plan, cnp.dtype dtype, arrays, out, int threads):
    cdef const Sizes *sizes = &plan.sizes
    cdef int padding = sizes.ndim - sizes.input_ndim
    cdef const Py_ssize_t *shape = &sizes.shape[padding]
    cdef Py_ssize_t rows[MAX_RANK + 1]
    cdef Py_ssize_t strides[MAX_RANK]
    cdef Plan stacked
    cdef cnp.ndarray array = plain_array(arrays)
    cdef cnp.ndarray target = None
    cdef cnp.dtype found = array.descr
    cdef int k
    if cnp.PyArray_NDIM(array) == 0 and not PyArray_Check(arrays):
        raise Refusal(TypeError, "must be a list or a tuple of arrays, or one array with one more axis in front, got "
                      f"{type(arrays).__name__}", "input")
    if found is not dtype and found != dtype:
        raise Refusal(TypeError, f"must have dtype {dtype}, got {found}", "input")
    if out is not None:
        target = read_target(out, found)
    memcpy(&rows[1], shape, sizes.input_ndim * sizeof(Py_ssize_t))
    rows[0] = cnp.PyArray_DIM(array, 0) if cnp.PyArray_NDIM(array) else 0
    if not has_shape(array, sizes.input_ndim + 1, rows):
        raise Refusal(ValueError, f"must have shape (n, {', '.join(map(str, as_tuple(shape, sizes.input_ndim)))}), got "
                      f"{(<object>array).shape}", "input")
    stacked_init(&stacked, sizes, rows[0])
    if padding:  # the plan's axes of extent 1 come after the first
        for k in range(sizes.ndim + 1):
            strides[k] = cnp.PyArray_STRIDE(array, k - padding if k > padding else 0)
        array = array_upon(array, sizes.ndim + 1, stacked.sizes.shape, strides, found, cnp.PyArray_DATA(array), 0)
    return write_result(&stacked, array, NULL, target, threads)


# ---------------------------------------------------------------- a list

cdef struct Batch:
    const Plan *plan
    const char *places      # of the arrays, each with room for the strides of its axes alone
    Py_ssize_t pitch        # bytes from one to the next
    Py_ssize_t n
    Place target            # of the first array's tiling
    Py_ssize_t step         # from there to the next
    Mode mode               # for each of them


cdef refuse_array(kind, str what, Py_ssize_t i):
    """The Refusal that names the array at fault."""
    return Refusal(kind, what, f"arrays[{i}]")


cdef cnp.ndarray write_list(const Plan *plan, cnp.dtype dtype, list arrays, out, int threads):
    cdef const Sizes *sizes = &plan.sizes
    cdef Py_ssize_t n = PyList_GET_SIZE(arrays)
    cdef Plan stacked
    cdef Batch batch
    cdef Place place
    cdef cnp.ndarray result = None
    cdef bytes places
    cdef bint warm = True
    cdef int status
    read_items(arrays, dtype, sizes)
    stacked_init(&stacked, sizes, n)
    if out is None:
        result = new_result(stacked.sizes.ndim, stacked.sizes.output, stacked.sizes.nbytes, &warm, dtype)
    else:
        result = read_target(out, dtype)
    batch.plan = plan
    batch.n = n
    batch.mode = choose_mode(stacked.sizes.nbytes, 1 if PyDataType_REFCHK(dtype) else threads, warm)
    # The last look at the arrays, as in write_result.
    batch.pitch = sizeof(Place) - (MAX_RANK - sizes.input_ndim) * sizeof(Py_ssize_t)
    places = note_places(arrays, sizes, batch.pitch)
    batch.places = PyBytes_AS_STRING(places)
    if out is None:
        place_note(&place, result)
    else:
        check_out(result, stacked.sizes.output, stacked.sizes.ndim, sizes.itemsize, NULL, NULL, &place)
        check_apart(&batch, &stacked.sizes, &place)
    if stacked.sizes.nbytes == 0:
        return result if out is None else emptied(result)
    batch.step = sizes.nbytes if place.contiguous else place.strides[0]
    place_at(&batch.target, place.data, NULL if place.contiguous else &place.strides[1], sizes.ndim, sizes.output,
             sizes.itemsize)
    if PyDataType_REFCHK(dtype):
        return write_references(&batch, arrays, result, out is None)
    if stacked.sizes.nbytes < TILECORE_NOGIL_BYTES:
        write_share(&batch, 0, n)
        return result
    with nogil:
        status = write_all(&batch)
    if status < 0:
        raise_pending()
    return result


cdef int read_items(list arrays, cnp.dtype dtype, const Sizes *sizes) except -1:
    """Make each item a plain array of the dtype and the plan's shape."""
    cdef const Py_ssize_t *shape = &sizes.shape[sizes.ndim - sizes.input_ndim]
    cdef cnp.ndarray array
    cdef cnp.dtype found
    cdef Py_ssize_t i
    for i in range(PyList_GET_SIZE(arrays)):
        if PyArray_CheckExact(arrays[i]):
            array = arrays[i]
        else:
            try:
                array = plain_array(arrays[i])
            except Refusal as refusal:
                hint = "; of a dataset of (image, label), pass the images alone" if isinstance(arrays[i], tuple) else ""
                raise refuse_array(refusal.kind, refusal.what + hint, i) from refusal.__cause__
            arrays[i] = array
        found = array.descr
        if found is not dtype and found != dtype:
            raise refuse_array(TypeError, f"must have dtype {dtype}, got {found}", i)
        if not has_shape(array, sizes.input_ndim, shape):
            raise shape_refusal(array, sizes.input_ndim, shape, "must have", f"arrays[{i}]")
    return 0


cdef bytes note_places(list arrays, const Sizes *sizes, Py_ssize_t pitch):
    """Note where each array lies, if it has the plan's shape."""
    cdef const Py_ssize_t *shape = &sizes.shape[sizes.ndim - sizes.input_ndim]
    cdef Py_ssize_t n = PyList_GET_SIZE(arrays), i
    cdef cnp.ndarray array
    cdef bytes places
    try:
        places = PyBytes_FromStringAndSize(NULL, n * pitch)
    except MemoryError:
        raise Refusal(MemoryError, f"no memory to note where {n} arrays lie") from None
    for i in range(n):
        array = <cnp.ndarray>arrays[i]
        if not has_shape(array, sizes.input_ndim, shape):
            raise shape_refusal(array, sizes.input_ndim, shape, "must have", f"arrays[{i}]")
        place_note(<Place *>(PyBytes_AS_STRING(places) + i * pitch), array)
    return places


cdef const Place *place_of(const Batch *batch, Py_ssize_t i) noexcept nogil:
    return <const Place *>(batch.places + i * batch.pitch)


cdef bint has_strides_of(const Place *a, const Place *b) noexcept nogil:
    if a.contiguous or b.contiguous:
        return a.contiguous == b.contiguous
    return memcmp(a.strides, b.strides, a.ndim * sizeof(Py_ssize_t)) == 0


cdef int check_apart(const Batch *batch, const Sizes *stacked, const Place *target) except -1:
    """That `out` shares no byte with any of the arrays."""
    cdef const Sizes *sizes = &batch.plan.sizes
    cdef const Py_ssize_t *shape = &sizes.shape[sizes.ndim - sizes.input_ndim]
    cdef size_t low, high, first
    cdef const Place *source
    cdef Py_ssize_t i
    if sizes.nbytes == 0 or not extents(target, stacked.output, sizes.itemsize, &low, &high):
        return 0
    for i in range(batch.n):
        source = place_of(batch, i)
        first = <size_t>source.data
        if source.contiguous and (first + sizes.input_nbytes <= low or high <= first):
            continue
        if share_bytes(source, shape, target, stacked.output, sizes.itemsize):
            raise Refusal(ValueError, f"must not share memory with arrays[{i}]", "out")
    return 0


# ---------------------------------------------------------------- bytes

cdef int write_all(Batch *batch) noexcept nogil:
    """Write the tilings of all arrays; 0, or -1 if a signal handler has raised."""
    cdef Py_ssize_t one = batch.plan.sizes.nbytes
    cdef Mode mode = batch.mode
    cdef Watch watch
    watch_begin(&watch, mode.poll)
    if mode.threads <= 1 or one >= TILECORE_THREAD_BYTES:
        return write_range(batch, 0, batch.n, &watch)
    batch.mode.threads = 1
    return execute_units(write_share, batch, batch.n, batch.n * one, mode, &watch)


cdef void write_share(void *batch, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef Watch watch
    watch_begin(&watch, False)
    write_range(<const Batch *>batch, first, last, &watch)


cdef int write_range(const Batch *batch, Py_ssize_t first, Py_ssize_t last, Watch *watch) noexcept nogil:
    """Write the tilings of the arrays numbered first to last - 1; as write_all."""
    cdef const Sizes *sizes = &batch.plan.sizes
    cdef const Place *source
    cdef const Place *prepared = NULL   # the nest and the job are for an array of these strides
    cdef char *dst = batch.target.data + first * batch.step
    cdef Py_ssize_t i
    cdef Nest nest
    cdef Job job
    cdef int status
    for i in range(first, last):
        source = place_of(batch, i)
        if prepared == NULL or not has_strides_of(source, prepared):
            nest_init(sizes, place_strides(source), place_strides(&batch.target), &nest)
            choose_job(&job, &nest, sizes.nbytes, batch.mode.warm)
            prepared = source
        if sizes.nbytes < TILECORE_NOGIL_BYTES:
            status = execute_job(&job, dst, source.data, sizes.nbytes, batch.mode, watch)
        else:
            status = execute_watched(&nest, dst, source.data, sizes.nbytes, batch.mode, watch)
        if status < 0:
            return -1
        dst += batch.step
    return 0


# ---------------------------------------------------------------- references

cdef cnp.ndarray write_references(Batch *batch, list arrays, cnp.ndarray result, bint is_new):
    """As write_all, with the GIL."""
    cdef const Sizes *sizes = &batch.plan.sizes
    cdef Place target = batch.target
    cdef Py_ssize_t i
    if is_new and can_be_counted(result.descr):
        batch.mode = Mode(1, False, False)  # looks for signals would let other code run
        write_all(batch)
        count_references(result, &target, 0, result)
        return result
    for i in range(batch.n):
        copy_references(sizes, arrays[i], place_of(batch, i), result, &target, NULL, sizes.output)
        target.data += batch.step
    return result
