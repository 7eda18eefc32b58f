/* tilecore for C11 and C++17 extension modules.
 *
 * Example: a module that tiles three floats into eight rows.
 *
 *     #include <tilecore/tilecore.h>
 *
 *     // in the module's init function, once, with the GIL; on -1 a Python error is set
 *     if (import_tilecore() < 0) return NULL;
 *
 *     const ptrdiff_t shape[] = {1, 3}, repeats[] = {8, 1};
 *     tilecore_plan *plan = tilecore_plan_new(2, shape, repeats, sizeof(float));
 *     if (plan == NULL) return NULL;                   // a Python error is set
 *     tilecore_plan_execute(plan, src, dst, 0);        // 24 floats; no GIL needed
 *     tilecore_plan_free(plan);
 *
 * Build with the folder that tilecore.get_include() returns. Nothing is linked: the functions come
 * from the installed package when import_tilecore() runs.
 *
 * Several source files in one module: as it stands, each file that calls a tilecore function calls
 * import_tilecore() itself. To do it once, define TILECORE_UNIQUE_SYMBOL to a name of your own in
 * all of them, before this header, and TILECORE_NO_IMPORT in all but the one that imports:
 *
 *     #define TILECORE_UNIQUE_SYMBOL my_module_tilecore
 *     #define TILECORE_NO_IMPORT
 *     #include <tilecore/tilecore.h>
 *
 * ABI: import_tilecore() fails with an ImportError that names both versions unless the installed
 * tilecore has the major version that the module was built with, and no older minor version.
 *
 * Cython modules need none of this: `cimport tilecore`.
 */
#ifndef TILECORE_TILECORE_H
#define TILECORE_TILECORE_H

#include <Python.h>
#include <stddef.h>

/* Minor: functions were added at the table's end. Major: anything else changed.
 *
 * 1.1: tilecore_plan_execute_strided, tilecore_plan_execute_region_strided
 *
 * A module that does without the newer functions may define a smaller minor version before this header,
 * and then runs with older versions of tilecore too; the newer functions are not declared then. */
#ifndef TILECORE_ABI_MAJOR
#define TILECORE_ABI_MAJOR 1
#endif
#ifndef TILECORE_ABI_MINOR
#define TILECORE_ABI_MINOR 1
#endif

#define TILECORE_CAPSULE "tilecore.capi._C_API"

#ifdef __cplusplus
extern "C" {
#endif

/* A tiling, planned once. Immutable: any number of threads may use one at the same time. */
typedef struct tilecore_plan tilecore_plan;

typedef struct tilecore_api {
    int abi_major, abi_minor;
    tilecore_plan *(*plan_new)(int ndim, const ptrdiff_t *shape, const ptrdiff_t *repeats, ptrdiff_t itemsize);
    void (*plan_free)(tilecore_plan *plan);
    void (*plan_output_shape)(const tilecore_plan *plan, ptrdiff_t *shape);
    ptrdiff_t (*plan_nbytes)(const tilecore_plan *plan);
    void (*plan_execute)(const tilecore_plan *plan, const void *src, void *dst, int threads);
    void (*plan_execute_region)(const tilecore_plan *plan, const void *src, void *dst, const ptrdiff_t *start,
                                const ptrdiff_t *stop, int threads);
    PyObject *(*array_tile)(PyObject *array, PyObject *repeats);
    void (*plan_execute_strided)(const tilecore_plan *plan, const void *src, const ptrdiff_t *src_strides, void *dst,
                                 const ptrdiff_t *dst_strides, int threads);
    void (*plan_execute_region_strided)(const tilecore_plan *plan, const void *src, const ptrdiff_t *src_strides,
                                        void *dst, const ptrdiff_t *dst_strides, const ptrdiff_t *start,
                                        const ptrdiff_t *stop, int threads);
} tilecore_api;

#if defined(TILECORE_UNIQUE_SYMBOL)
#define tilecore_api_table TILECORE_UNIQUE_SYMBOL
/* Hidden: no other module of the process sees it, whatever name was chosen. */
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
extern const tilecore_api *tilecore_api_table;
#if !defined(TILECORE_NO_IMPORT)
const tilecore_api *tilecore_api_table = NULL;
#endif
#elif defined(TILECORE_NO_IMPORT)
#error "TILECORE_NO_IMPORT needs TILECORE_UNIQUE_SYMBOL, the name under which another source file imports tilecore"
#else
static const tilecore_api *tilecore_api_table = NULL;
#endif

/* Finds the installed tilecore. With the GIL, before any other function here; may be called again.
 * Returns 0, or -1 with ImportError set. */
static inline int import_tilecore(void)
{
    PyObject *module = PyImport_ImportModule("tilecore.capi");
    const tilecore_api *table;
    if (module == NULL) return -1;
    Py_DECREF(module); /* it stays in sys.modules */
    table = (const tilecore_api *)PyCapsule_Import(TILECORE_CAPSULE, 0);
    if (table == NULL) return -1;
    if (table->abi_major != TILECORE_ABI_MAJOR || table->abi_minor < TILECORE_ABI_MINOR) {
        PyErr_Format(PyExc_ImportError,
                     "this module was built for tilecore's C ABI %d.%d, but the installed tilecore provides %d.%d",
                     TILECORE_ABI_MAJOR, TILECORE_ABI_MINOR, table->abi_major, table->abi_minor);
        return -1;
    }
    tilecore_api_table = table;
    return 0;
}

/* 1, or 0 with RuntimeError set where import_tilecore() was forgotten. */
static inline int tilecore_imported(const char *function)
{
    if (tilecore_api_table != NULL) return 1;
    PyErr_Format(PyExc_RuntimeError,
                 "%s: import_tilecore() must be called first, by each source file or by the one that has "
                 "TILECORE_UNIQUE_SYMBOL without TILECORE_NO_IMPORT",
                 function);
    return 0;
}

/* A plan for a C-contiguous source of `ndim` axes (0 to 64) of `shape`, each repeated `repeats` times,
 * of items of `itemsize` bytes. Both arrays are copied. It takes the default number of threads from
 * the moment it is made.
 *
 * With the GIL. Returns a plan that the caller owns, to be given to tilecore_plan_free; or NULL with
 * a Python error set: ValueError for a negative or too large number, MemoryError, RuntimeError where
 * import_tilecore() was not called. */
static inline tilecore_plan *tilecore_plan_new(int ndim, const ptrdiff_t *shape, const ptrdiff_t *repeats,
                                               ptrdiff_t itemsize)
{
    if (!tilecore_imported("tilecore_plan_new")) return NULL;
    return tilecore_api_table->plan_new(ndim, shape, repeats, itemsize);
}

/* Frees a plan; NULL is allowed. No thread may be using it. Needs no GIL, cannot fail. */
static inline void tilecore_plan_free(tilecore_plan *plan)
{
    if (plan != NULL) tilecore_api_table->plan_free(plan);
}

/* Writes the output's extents, as many as the plan's ndim, to `shape`. Needs no GIL, cannot fail. */
static inline void tilecore_plan_output_shape(const tilecore_plan *plan, ptrdiff_t *shape)
{
    tilecore_api_table->plan_output_shape(plan, shape);
}

/* Bytes of the whole output. Needs no GIL, cannot fail. */
static inline ptrdiff_t tilecore_plan_nbytes(const tilecore_plan *plan)
{
    return tilecore_api_table->plan_nbytes(plan);
}

/* Writes the whole output, tilecore_plan_nbytes(plan) bytes, to `dst` from the C-contiguous `src`.
 * They must not overlap and need no alignment; where the output has no bytes they may be NULL.
 * `threads`: at most so many; 0 or less: the plan's default; 1 where you have threads of your own.
 * Large outputs alone are shared out. Needs no GIL (release it for large outputs), cannot
 * fail, does not look for signals, and may run in any number of threads at once. */
static inline void tilecore_plan_execute(const tilecore_plan *plan, const void *src, void *dst, int threads)
{
    tilecore_api_table->plan_execute(plan, src, dst, threads);
}

/* As tilecore_plan_execute, for the region [start, stop) of the output alone: `dst` receives it
 * C-contiguous, in the shape stop - start. start and stop have the plan's ndim entries, and
 * 0 <= start <= stop <= output shape on every axis, which is not checked. The time depends on the
 * region alone. */
static inline void tilecore_plan_execute_region(const tilecore_plan *plan, const void *src, void *dst,
                                                const ptrdiff_t *start, const ptrdiff_t *stop, int threads)
{
    tilecore_api_table->plan_execute_region(plan, src, dst, start, stop, threads);
}

#if TILECORE_ABI_MINOR >= 1
/* As tilecore_plan_execute, from a source and to an output of any strides: one channel of an image, a
 * slice of a batch, a transposed or reversed array. `src` and `dst` are where the element of index 0 on
 * every axis lies. Strides are in bytes, one for each of the plan's axes, of any sign; NULL says
 * C-contiguous. In the output no two elements may share a byte, which is not checked; in the source they
 * may (stride 0). */
static inline void tilecore_plan_execute_strided(const tilecore_plan *plan, const void *src,
                                                 const ptrdiff_t *src_strides, void *dst, const ptrdiff_t *dst_strides,
                                                 int threads)
{
    tilecore_api_table->plan_execute_strided(plan, src, src_strides, dst, dst_strides, threads);
}

/* Likewise for the region [start, stop): `dst` is where its own first element goes, start[k] on axis k. */
static inline void tilecore_plan_execute_region_strided(const tilecore_plan *plan, const void *src,
                                                        const ptrdiff_t *src_strides, void *dst,
                                                        const ptrdiff_t *dst_strides, const ptrdiff_t *start,
                                                        const ptrdiff_t *stop, int threads)
{
    tilecore_api_table->plan_execute_region_strided(plan, src, src_strides, dst, dst_strides, start, stop, threads);
}
#endif

/* tilecore.tile(array, repeats), for arrays of any strides and dtype. With the GIL. Returns a new
 * reference, or NULL with the Python error of tilecore.tile set, or RuntimeError where import_tilecore()
 * was not called. */
static inline PyObject *tilecore_array_tile(PyObject *array, PyObject *repeats)
{
    if (!tilecore_imported("tilecore_array_tile")) return NULL;
    return tilecore_api_table->array_tile(array, repeats);
}

#ifdef __cplusplus
}
#endif

#endif /* TILECORE_TILECORE_H */
