# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The C functions that other modules call, and the table through which C and C++ find them.

Cython modules cimport the functions themselves, and Cython checks every signature at import.
C and C++ modules get the table by import_tilecore() of tilecore.h, which checks the ABI's version.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_New

from tilecore._core.execute cimport (
    TILECORE_DEFAULT_THREAD_BYTES, TILECORE_THREAD_BYTES, Mode, execute, execute_region,
)
from tilecore._core.plan cimport MAX_RANK, PLAN_OK, Nest, Plan, plan_init, plan_nest, plan_problem

from tilecore._core.threads import get_num_threads
from tilecore._core.arrays import tile


cdef extern from "tilecore/tilecore.h":
    enum:
        TILECORE_ABI_MAJOR
        TILECORE_ABI_MINOR
    const char *TILECORE_CAPSULE
    ctypedef struct tilecore_api:
        int abi_major, abi_minor
        tilecore_plan *(*plan_new)(int, const Py_ssize_t *, const Py_ssize_t *, Py_ssize_t) except NULL
        void (*plan_free)(tilecore_plan *) noexcept nogil
        void (*plan_output_shape)(const tilecore_plan *, Py_ssize_t *) noexcept nogil
        Py_ssize_t (*plan_nbytes)(const tilecore_plan *) noexcept nogil
        void (*plan_execute)(const tilecore_plan *, const void *, void *, int) noexcept nogil
        void (*plan_execute_region)(const tilecore_plan *, const void *, void *, const Py_ssize_t *,
                                    const Py_ssize_t *, int) noexcept nogil
        object (*array_tile)(object, object)


cdef struct Planned:  # what a tilecore_plan is
    Plan plan
    Nest nest    # unset where nothing is written
    int threads


cdef tilecore_plan *tilecore_plan_new(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                      Py_ssize_t itemsize) except NULL:
    cdef Planned *planned
    cdef int k, status
    if not 0 <= ndim <= MAX_RANK:
        raise ValueError(f"tilecore_plan_new: expected a rank from 0 to {MAX_RANK}, got {ndim}")
    if itemsize < 0:
        raise ValueError(f"tilecore_plan_new: the itemsize must not be negative, got {itemsize}")
    for k in range(ndim):
        if shape[k] < 0:
            raise ValueError(f"tilecore_plan_new: extents must not be negative, got {shape[k]} for axis {k}")
    planned = <Planned *>PyMem_RawMalloc(sizeof(Planned))
    if planned == NULL:
        raise MemoryError(f"tilecore_plan_new: no memory for a plan of {sizeof(Planned)} bytes")
    status = plan_init(&planned.plan, ndim, shape, ndim, repeats, itemsize)
    try:
        if status != PLAN_OK:
            asked = [(shape[k], repeats[k]) for k in range(ndim)]
            raise ValueError(f"tilecore_plan_new: {plan_problem(&planned.plan, status)}; "
                             f"input shape and repeats by axis {asked}, itemsize {itemsize}")
        planned.threads = get_num_threads()
    except:
        PyMem_RawFree(planned)
        raise
    if planned.plan.nbytes:
        plan_nest(&planned.plan, ndim, NULL, &planned.nest)
    return <tilecore_plan *>planned


cdef void tilecore_plan_free(tilecore_plan *plan) noexcept nogil:
    PyMem_RawFree(plan)


cdef void tilecore_plan_output_shape(const tilecore_plan *plan, Py_ssize_t *shape) noexcept nogil:
    cdef const Plan *known = &(<const Planned *>plan).plan
    cdef int k
    for k in range(known.ndim):
        shape[k] = known.output[k]


cdef Py_ssize_t tilecore_plan_nbytes(const tilecore_plan *plan) noexcept nogil:
    return (<const Planned *>plan).plan.nbytes


cdef Mode caller_mode(const Planned *planned, int threads) noexcept nogil:
    """The caller's memory is taken for warm, and signals are the caller's too."""
    if threads > 0:
        return Mode(threads, TILECORE_THREAD_BYTES, True, False)
    return Mode(planned.threads, TILECORE_DEFAULT_THREAD_BYTES, True, False)


cdef void tilecore_plan_execute(const tilecore_plan *plan, const void *src, void *dst, int threads) noexcept nogil:
    cdef const Planned *planned = <const Planned *>plan
    if planned.plan.nbytes:
        execute(&planned.nest, <char *>dst, <const char *>src, planned.plan.nbytes,
                caller_mode(planned, threads))


cdef void tilecore_plan_execute_region(const tilecore_plan *plan, const void *src, void *dst,
                                       const Py_ssize_t *start, const Py_ssize_t *stop, int threads) noexcept nogil:
    cdef const Planned *planned = <const Planned *>plan
    cdef int k
    if planned.plan.nbytes == 0:
        return
    for k in range(planned.plan.ndim):
        if start[k] >= stop[k]:
            return
    execute_region(&planned.plan, planned.plan.ndim, NULL, <char *>dst, <const char *>src, start, stop,
                   caller_mode(planned, threads))


cdef object tilecore_array_tile(object array, object repeats):
    return tile(array, repeats)


cdef tilecore_api table  # static: it stays, whoever holds it
table.abi_major = TILECORE_ABI_MAJOR
table.abi_minor = TILECORE_ABI_MINOR
table.plan_new = tilecore_plan_new
table.plan_free = tilecore_plan_free
table.plan_output_shape = tilecore_plan_output_shape
table.plan_nbytes = tilecore_plan_nbytes
table.plan_execute = tilecore_plan_execute
table.plan_execute_region = tilecore_plan_execute_region
table.array_tile = tilecore_array_tile
_C_API = PyCapsule_New(&table, TILECORE_CAPSULE, NULL)
