# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The C functions that other modules call, and the table through which C and C++ find them.

Cython modules cimport the functions themselves, and Cython checks every signature at import.
C and C++ modules get the table by import_tilecore() of tilecore.h, which checks the ABI's version.
Numba and ctypes find the functions by this module's name: Cython lists each, with its signature, in
`__pyx_capi__`, where `numba.extending.get_cython_function_address` looks. So the module's name and the
signatures are part of the ABI.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.pycapsule cimport PyCapsule_New
from libc.string cimport memcpy

from tilecore._core.plan cimport MAX_RANK, Place, plan_check
from tilecore._core.tiling cimport (
    Tiling, caller_mode, default_threads, tiling_clear, tiling_execute, tiling_execute_region, tiling_init,
    tiling_prepare,
)

from tilecore._core.arrays import tile
from tilecore._core.refusals import Refusal, worded


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
        void (*plan_execute_strided)(const tilecore_plan *, const void *, const Py_ssize_t *, void *,
                                     const Py_ssize_t *, int) noexcept nogil
        void (*plan_execute_region_strided)(const tilecore_plan *, const void *, const Py_ssize_t *, void *,
                                            const Py_ssize_t *, const Py_ssize_t *, const Py_ssize_t *,
                                            int) noexcept nogil


cdef tilecore_plan *tilecore_plan_new(int ndim, const Py_ssize_t *shape, const Py_ssize_t *repeats,
                                      Py_ssize_t itemsize) except NULL:
    cdef Tiling *tiling = NULL
    cdef int k
    try:
        if not 0 <= ndim <= MAX_RANK:
            raise Refusal(ValueError, f"expected a rank from 0 to {MAX_RANK}, got {ndim}")
        if itemsize < 0:
            raise Refusal(ValueError, f"the itemsize must not be negative, got {itemsize}")
        for k in range(ndim):
            if shape[k] < 0:
                raise Refusal(ValueError, f"extents must not be negative, got {shape[k]}", None, k)
        tiling = <Tiling *>PyMem_RawMalloc(sizeof(Tiling))
        if tiling == NULL:
            raise Refusal(MemoryError, f"no memory for a plan of {sizeof(Tiling)} bytes")
        plan_check(&tiling.plan, tiling_init(tiling, ndim, shape, ndim, repeats, itemsize))
        tiling.threads = default_threads()
        if not tiling_prepare(tiling):
            raise Refusal(MemoryError, "no memory for the plan's block")
    except Refusal as refusal:
        PyMem_RawFree(tiling)
        asked = [(shape[k], repeats[k]) for k in range(max(0, min(ndim, MAX_RANK)))]
        given = {"input shape and repeats by axis": asked, "itemsize": itemsize}
        raise worded(refusal, "tilecore_plan_new", None, **given)
    except:
        PyMem_RawFree(tiling)
        raise
    return <tilecore_plan *>tiling


cdef void tilecore_plan_free(tilecore_plan *plan) noexcept nogil:
    if plan != NULL:
        tiling_clear(<Tiling *>plan)
        PyMem_RawFree(plan)


cdef void tilecore_plan_output_shape(const tilecore_plan *plan, Py_ssize_t *shape) noexcept nogil:
    cdef const Tiling *tiling = <const Tiling *>plan
    cdef int k
    for k in range(tiling.plan.ndim):
        shape[k] = tiling.plan.output[k]


cdef Py_ssize_t tilecore_plan_nbytes(const tilecore_plan *plan) noexcept nogil:
    return (<const Tiling *>plan).plan.nbytes


cdef void place_of(Place *place, const Tiling *tiling, const void *data, const Py_ssize_t *strides) noexcept nogil:
    """At `data`, by `strides`; NULL for the order of C."""
    place.data = <char *>data
    place.ndim = tiling.plan.ndim
    place.contiguous = strides == NULL
    if strides != NULL:
        memcpy(place.strides, strides, place.ndim * sizeof(Py_ssize_t))


cdef void tilecore_plan_execute(const tilecore_plan *plan, const void *src, void *dst, int threads) noexcept nogil:
    tilecore_plan_execute_strided(plan, src, NULL, dst, NULL, threads)


cdef void tilecore_plan_execute_region(const tilecore_plan *plan, const void *src, void *dst,
                                       const Py_ssize_t *start, const Py_ssize_t *stop, int threads) noexcept nogil:
    tilecore_plan_execute_region_strided(plan, src, NULL, dst, NULL, start, stop, threads)


cdef void tilecore_plan_execute_strided(const tilecore_plan *plan, const void *src, const Py_ssize_t *src_strides,
                                        void *dst, const Py_ssize_t *dst_strides, int threads) noexcept nogil:
    cdef const Tiling *tiling = <const Tiling *>plan
    cdef Place source, target
    place_of(&source, tiling, src, src_strides)
    place_of(&target, tiling, dst, dst_strides)
    tiling_execute(tiling, &source, &target, caller_mode(tiling, threads))


cdef void tilecore_plan_execute_region_strided(const tilecore_plan *plan, const void *src,
                                               const Py_ssize_t *src_strides, void *dst,
                                               const Py_ssize_t *dst_strides, const Py_ssize_t *start,
                                               const Py_ssize_t *stop, int threads) noexcept nogil:
    cdef const Tiling *tiling = <const Tiling *>plan
    cdef Place source, target
    cdef Py_ssize_t nbytes = tiling.plan.itemsize
    cdef int k
    place_of(&source, tiling, src, src_strides)
    place_of(&target, tiling, dst, dst_strides)
    for k in range(tiling.plan.ndim):
        if start[k] >= stop[k]:
            return
        nbytes *= stop[k] - start[k]  # no more than the whole output's
    tiling_execute_region(tiling, &source, &target, start, stop, nbytes, caller_mode(tiling, threads))


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
table.plan_execute_strided = tilecore_plan_execute_strided
table.plan_execute_region_strided = tilecore_plan_execute_region_strided
_C_API = PyCapsule_New(&table, TILECORE_CAPSULE, NULL)
