"""The C functions that other modules call, and the table in which C and C++ find them; tilecore.h describes them.

Cython modules cimport the functions themselves, and Cython checks every signature at import. C and C++ modules get the
table by import_tilecore() of tilecore.h, which checks the ABI's version. Numba and ctypes find the functions in
`__pyx_capi__`, Cython's list of them by name and signature. So this module's name and the signatures belong to the ABI.

The `nogil` functions may run in threads that Python does not know, so they call nothing that takes the GIL.
"""

cdef extern from *:
    """
    /* Import the package before each module that is cimported. So this waits for a thread that is importing it. */
    static PyObject *tilecore_import(const char *name) {
        PyObject *package = PyImport_ImportModule("tilecore");
        Py_XDECREF(package);
        return package ? PyImport_ImportModule(name) : NULL;
    }
    #define PyImport_ImportModule tilecore_import
    """

from cpython.pycapsule cimport PyCapsule_New
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.plan cimport Plan, input_shape, plan_init, plan_tiling, region_init
from tilecore._core.request.overlaps cimport may_overlap, may_share
from tilecore._core.resources.process_state cimport find_cpu_share
from tilecore._core.strided_arrays cimport StridedArray, locate_data
from tilecore._core.write.tiling cimport WriteOptions, fill_options, write_tiling

from tilecore._core.arrays import tile
from tilecore._core.request.errors import RequestError, format_error


cdef extern from "tilecore/tilecore.h":
    const char *TILECORE_CAPSULE

cdef extern from *:
    """
    static const char *const tilecore_texts[] = {
        "no error", "the rank must be from 0 to 64", "extents must not be negative",
        "the itemsize must not be negative", "repeats must not be negative",
        "the result is too large: its size overflows", "no memory for the plan",
        "import_tilecore() was not called", "unknown status",
    };

    /* Static, so that it outlives its users. The C compiler compares the functions with the header's types. */
    static tilecore_api tilecore_table[1];
    #define tilecore_fill_table(...) \
        (void)(tilecore_table[0] = (tilecore_api){TILECORE_ABI_MAJOR, TILECORE_ABI_MINOR, __VA_ARGS__})
    """
    const char *tilecore_texts[]
    void *tilecore_table
    void fill_table "tilecore_fill_table" (...)


cdef int check_and_plan(Plan *plan, int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                        Py_ssize_t itemsize) noexcept nogil:
    """Check the arguments in the order of the statuses, fill `plan`, and return a status."""
    cdef int k
    if not (0 <= ndim <= MAX_RANK and 0 <= nreps <= MAX_RANK):
        return TILECORE_BAD_RANK
    for k in range(ndim):
        if shape[k] < 0:
            return TILECORE_BAD_SHAPE
    if itemsize < 0:
        return TILECORE_BAD_ITEMSIZE
    if plan_init(plan, ndim, shape, nreps, repeats, itemsize):
        return TILECORE_OK
    for k in range(nreps):
        if repeats[k] < 0:
            return TILECORE_BAD_REPEATS
    return TILECORE_OVERFLOW


cdef const char *tilecore_status_text(int status) noexcept nogil:
    return tilecore_texts[status if TILECORE_OK <= status <= TILECORE_NOT_IMPORTED else TILECORE_NOT_IMPORTED + 1]


cdef tilecore_plan *tilecore_plan_make(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                       Py_ssize_t itemsize, int *status) noexcept nogil:
    cdef Plan checked
    cdef Plan *plan
    status[0] = check_and_plan(&checked, ndim, shape, ndim, repeats, itemsize)
    if status[0] != TILECORE_OK:
        return NULL
    plan = <Plan *>malloc(sizeof(Plan))
    if plan == NULL:
        status[0] = TILECORE_NO_MEMORY
    else:
        plan[0] = checked
    return <tilecore_plan *>plan


cdef tilecore_plan *tilecore_plan_new(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                      Py_ssize_t itemsize) except NULL:
    cdef Plan failed
    cdef int status, k
    cdef tilecore_plan *plan = tilecore_plan_make(ndim, shape, repeats, itemsize, &status)
    if plan != NULL:
        return plan
    try:
        if status == TILECORE_BAD_REPEATS or status == TILECORE_OVERFLOW:
            plan_tiling(&failed, ndim, shape, ndim, repeats, itemsize)  # names the axis
        raise RequestError(MemoryError if status == TILECORE_NO_MEMORY else ValueError,
                           tilecore_status_text(status).decode())
    except RequestError as error:
        by_axis = []
        for k in range(ndim if status != TILECORE_BAD_RANK else 0):
            by_axis.append((shape[k], repeats[k]))
        given = {"rank": ndim, "input shape and repeats by axis": by_axis, "itemsize": itemsize}
        raise format_error(error, "tilecore_plan_new", None, **given)


cdef void tilecore_plan_free(tilecore_plan *plan) noexcept nogil:
    free(plan)


cdef void tilecore_plan_output_shape(const tilecore_plan *handle, Py_ssize_t *shape) noexcept nogil:
    cdef const Plan *plan = <const Plan *>handle
    memcpy(shape, plan.output_shape, plan.ndim * sizeof(Py_ssize_t))


cdef Py_ssize_t tilecore_plan_nbytes(const tilecore_plan *handle) noexcept nogil:
    return (<const Plan *>handle).nbytes


cdef void tilecore_plan_execute(const tilecore_plan *handle, const void *src, const Py_ssize_t *src_strides, void *dst,
                                const Py_ssize_t *dst_strides, int threads) noexcept nogil:
    cdef const Plan *plan = <const Plan *>handle
    cdef StridedArray source, target
    cdef WriteOptions options
    if plan.nbytes == 0:
        return
    locate_data(&source, src, src_strides, plan.input_ndim, input_shape(plan), plan.itemsize)
    locate_data(&target, dst, dst_strides, plan.ndim, plan.output_shape, plan.itemsize)
    fill_options(&options, plan.nbytes, threads, True)
    write_tiling(plan, &source, &target, &options)


cdef void tilecore_plan_execute_region(const tilecore_plan *handle, const void *src, const Py_ssize_t *src_strides,
                                       void *dst, const Py_ssize_t *dst_strides, const Py_ssize_t *start,
                                       const Py_ssize_t *stop, int threads) noexcept nogil:
    cdef Plan region
    region_init(&region, <const Plan *>handle, start, stop)
    tilecore_plan_execute(<const tilecore_plan *>&region, src, src_strides, dst, dst_strides, threads)


cdef int tilecore_output_shape(int ndim, const Py_ssize_t *shape, int nreps, const Py_ssize_t *repeats,
                               Py_ssize_t itemsize, Py_ssize_t *output_shape, Py_ssize_t *nbytes) noexcept nogil:
    cdef Plan plan
    cdef int status = check_and_plan(&plan, ndim, shape, nreps, repeats, itemsize)
    if status == TILECORE_OK:
        if output_shape != NULL:
            tilecore_plan_output_shape(<const tilecore_plan *>&plan, output_shape)
        if nbytes != NULL:
            nbytes[0] = plan.nbytes
    return status


cdef int tilecore_tile(int ndim, const Py_ssize_t *shape, const Py_ssize_t *src_strides, int nreps,
                       const Py_ssize_t *repeats, Py_ssize_t itemsize, const void *src, void *dst,
                       const Py_ssize_t *dst_strides, int threads) noexcept nogil:
    cdef Plan plan
    cdef int status = check_and_plan(&plan, ndim, shape, nreps, repeats, itemsize)
    if status == TILECORE_OK:
        tilecore_plan_execute(<const tilecore_plan *>&plan, src, src_strides, dst, dst_strides, threads)
    return status


cdef int tilecore_find_overlap(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides, const void *data,
                               int out_ndim, const Py_ssize_t *out_shape, const Py_ssize_t *out_strides,
                               const void *out, Py_ssize_t itemsize) noexcept nogil:
    """Return 1 if elements of `out` may overlap, 2 if it may share memory with the input, else 0."""
    cdef StridedArray source, target
    locate_data(&source, data, strides, ndim, shape, itemsize)
    locate_data(&target, out, out_strides, out_ndim, out_shape, itemsize)
    if not target.contiguous and may_overlap(&target, out_shape, itemsize):
        return 1
    return 2 if may_share(&source, shape, &target, out_shape, itemsize) else 0


cdef object tilecore_array_tile(object array, object repeats):
    return tile(array, repeats)


fill_table(
    tilecore_plan_new, tilecore_plan_make, tilecore_plan_free, tilecore_plan_output_shape, tilecore_plan_nbytes,
    tilecore_plan_execute, tilecore_plan_execute_region, tilecore_output_shape, tilecore_tile, tilecore_status_text,
    tilecore_array_tile)
_C_API = PyCapsule_New(tilecore_table, TILECORE_CAPSULE, NULL)
find_cpu_share()  # the functions without the GIL cannot do this
