/* tilecore for C11 and C++17 extension modules: NumPy's tile for arrays of any rank, strides and plain items.
 *
 *     #include <tilecore/tilecore.h>
 *
 *     // In the module's init function, with the GIL: if (import_tilecore() < 0) return NULL;
 *
 *     // From three floats to eight rows of them. No GIL needed. tilecore_status_text() explains the status.
 *     static int repeat_row(const float *row, float *rows)
 *     {
 *         const ptrdiff_t shape[] = {3}, repeats[] = {8, 1};
 *         return tilecore_tile(1, shape, NULL, 2, repeats, sizeof(float), row, rows, NULL, 0);
 *     }
 *
 *     // Tiles n images of shape (4, 5) by (2, 3), with one plan. Executing cannot fail. No GIL needed.
 *     static int tile_each(const float *images, float *tiled, int n)
 *     {
 *         const ptrdiff_t shape[] = {4, 5}, repeats[] = {2, 3};
 *         int i, status;
 *         tilecore_plan *plan = tilecore_plan_make(2, shape, repeats, sizeof(float), &status);
 *         if (plan == NULL) return status;
 *         for (i = 0; i < n; i++) tilecore_plan_execute(plan, images + 20 * i, NULL, tiled + 120 * i, NULL, 0);
 *         tilecore_plan_free(plan);
 *         return TILECORE_OK;
 *     }
 *
 * Build with the folder that tilecore.get_include() returns. Nothing is linked: import_tilecore() finds the functions
 * in the installed package. Cython modules need none of this: `cimport tilecore`.
 *
 * All functions:
 *
 * - An array is a pointer to its element of index 0 on every axis, an extent for each axis, and strides: bytes from one
 *   element to the next on each axis, of any sign. NULL strides mean C-contiguous. An item is `itemsize` bytes without
 *   references to Python objects. Nothing needs alignment.
 * - The output must be large enough for the result. Its elements must not overlap each other or the source. This is not
 *   checked. Elements of the source may overlap (stride 0). Source and output of an empty result may be NULL.
 *   tilecore.set_max_bytes() does not apply.
 * - `threads` is the maximum number of threads that write. 0 or less means the default of the process, as set by
 *   tilecore.set_num_threads() or TILECORE_NUM_THREADS (tilecore.num_threads() applies to calls from Python only).
 *   Pass 1 in threads of your own. Only the calling thread writes outputs below 1 MiB.
 * - Functions that need no GIL may run in any number of threads at once. They never take the GIL and do not check for
 *   signals: a KeyboardInterrupt waits until the call returns. Release the GIL around large calls.
 * - All functions work in a thread with a stack of 48 KiB, and in a child of os.fork(). The child's default is 1 thread
 *   until the parent or the child sets a number, or a call from Python uses the default.
 *
 * If a module has several source files, each may call import_tilecore(). Or only one calls it: then all files define
 * TILECORE_UNIQUE_SYMBOL as the same name of your own before they include this header, and all but that one also define
 * TILECORE_NO_IMPORT.
 */
#ifndef TILECORE_TILECORE_H
#define TILECORE_TILECORE_H

#include <Python.h>
#include <stddef.h>

/* A new minor version adds functions at the table's end; a new major one changes anything else. import_tilecore() fails
 * unless the installed tilecore has this major version, and this minor version or a newer one. */
#define TILECORE_ABI_MAJOR 1
#define TILECORE_ABI_MINOR 0

#define TILECORE_CAPSULE "tilecore.capi._C_API"

#ifdef __cplusplus
extern "C" {
#endif

#define TILECORE_MAX_RANK 64

/* Statuses. Arguments are checked in this order. Nothing is written unless the status is TILECORE_OK. */
enum {
    TILECORE_OK = 0,
    TILECORE_BAD_RANK = 1,     /* the number of axes or of repeats is below 0 or above TILECORE_MAX_RANK */
    TILECORE_BAD_SHAPE = 2,    /* a negative extent */
    TILECORE_BAD_ITEMSIZE = 3, /* a negative itemsize; 0 is allowed */
    TILECORE_BAD_REPEATS = 4,  /* a negative repeat */
    TILECORE_OVERFLOW = 5,     /* extent, elements or bytes of the result exceed PTRDIFF_MAX, zeros left out */
    TILECORE_NO_MEMORY = 6,    /* no memory for a plan */
    TILECORE_NOT_IMPORTED = 7  /* import_tilecore() was not called */
};

/* Shape, repeats and itemsize. Immutable: any number of threads may use it at the same time. */
typedef struct tilecore_plan tilecore_plan;

/* The functions below, as the installed tilecore provides them. */
typedef struct tilecore_api {
    int abi_major, abi_minor;
    tilecore_plan *(*plan_new)(int, const ptrdiff_t *, const ptrdiff_t *, ptrdiff_t);
    tilecore_plan *(*plan_make)(int, const ptrdiff_t *, const ptrdiff_t *, ptrdiff_t, int *);
    void (*plan_free)(tilecore_plan *);
    void (*plan_output_shape)(const tilecore_plan *, ptrdiff_t *);
    ptrdiff_t (*plan_nbytes)(const tilecore_plan *);
    void (*plan_execute)(const tilecore_plan *, const void *, const ptrdiff_t *, void *, const ptrdiff_t *, int);
    void (*plan_execute_region)(const tilecore_plan *, const void *, const ptrdiff_t *, void *, const ptrdiff_t *,
                                const ptrdiff_t *, const ptrdiff_t *, int);
    int (*output_shape)(int, const ptrdiff_t *, int, const ptrdiff_t *, ptrdiff_t, ptrdiff_t *, ptrdiff_t *);
    int (*tile)(int, const ptrdiff_t *, const ptrdiff_t *, int, const ptrdiff_t *, ptrdiff_t, const void *, void *,
                const ptrdiff_t *, int);
    const char *(*status_text)(int);
    PyObject *(*array_tile)(PyObject *, PyObject *);
} tilecore_api;

#if defined(TILECORE_UNIQUE_SYMBOL)
#define tilecore_api_table TILECORE_UNIQUE_SYMBOL
/* Hidden, so that no other module of the process sees it, whatever name was chosen. */
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
extern const tilecore_api *tilecore_api_table;
#if !defined(TILECORE_NO_IMPORT)
const tilecore_api *tilecore_api_table;
#endif
#elif defined(TILECORE_NO_IMPORT)
#error "TILECORE_NO_IMPORT needs TILECORE_UNIQUE_SYMBOL, the name under which another source file imports tilecore"
#else
static const tilecore_api *tilecore_api_table; /* NULL, as all static pointers */
#endif

/* Finds the installed tilecore. Call it with the GIL, before any other function here; it may be called again.
 * Returns 0, or -1 with an ImportError set. */
static inline int import_tilecore(void)
{
    PyObject *module = PyImport_ImportModule("tilecore.capi");
    const tilecore_api *table;
    if (module == NULL) return -1;
    Py_DECREF(module); /* it stays in sys.modules */
#if defined(__cplusplus)
    table = static_cast<const tilecore_api *>(PyCapsule_Import(TILECORE_CAPSULE, 0));
#else
    table = PyCapsule_Import(TILECORE_CAPSULE, 0);
#endif
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

/* Returns 1, or 0 with a RuntimeError set. */
static inline int tilecore_imported(const char *function)
{
    if (tilecore_api_table == NULL)
        PyErr_Format(PyExc_RuntimeError, "%s: import_tilecore() must be called first", function);
    return tilecore_api_table != NULL;
}

/* Returns the status as a phrase in English, which stays valid until the process ends. Needs no GIL, cannot fail. */
static inline const char *tilecore_status_text(int status)
{
    return tilecore_api_table != NULL ? tilecore_api_table->status_text(status) : "import_tilecore() was not called";
}

/* ---------------------------------------------------------------- in one call */

/* The shape and the bytes of a result, by NumPy's rule: the shorter of `shape` (`ndim` entries) and `repeats` (`nreps`
 * entries) gets 1s in front. Writes one entry for each axis of the result to `output_shape`, and the number of bytes to
 * `nbytes`; either may be NULL. Needs no GIL. Returns a status. */
static inline int tilecore_output_shape(int ndim, const ptrdiff_t *shape, int nreps, const ptrdiff_t *repeats,
                                        ptrdiff_t itemsize, ptrdiff_t *output_shape, ptrdiff_t *nbytes)
{
    if (tilecore_api_table == NULL) return TILECORE_NOT_IMPORTED;
    return tilecore_api_table->output_shape(ndim, shape, nreps, repeats, itemsize, output_shape, nbytes);
}

/* Tiles `src` to `dst`, of the shape from tilecore_output_shape, without a plan. Allocates nothing for small results.
 * `src_strides` has `ndim` entries, `dst_strides` one for each axis of the result. Needs no GIL. Returns a status. */
static inline int tilecore_tile(int ndim, const ptrdiff_t *shape, const ptrdiff_t *src_strides, int nreps,
                                const ptrdiff_t *repeats, ptrdiff_t itemsize, const void *src, void *dst,
                                const ptrdiff_t *dst_strides, int threads)
{
    if (tilecore_api_table == NULL) return TILECORE_NOT_IMPORTED;
    return tilecore_api_table->tile(ndim, shape, src_strides, nreps, repeats, itemsize, src, dst, dst_strides, threads);
}

/* ---------------------------------------------------------------- plans */

/* Makes a plan; free it with tilecore_plan_free. `shape` and `repeats` have `ndim` entries each, and are copied.
 * Needs no GIL. Sets `status`, which may not be NULL; returns NULL unless that is TILECORE_OK. */
static inline tilecore_plan *tilecore_plan_make(int ndim, const ptrdiff_t *shape, const ptrdiff_t *repeats,
                                                ptrdiff_t itemsize, int *status)
{
    if (tilecore_api_table != NULL) return tilecore_api_table->plan_make(ndim, shape, repeats, itemsize, status);
    *status = TILECORE_NOT_IMPORTED;
    return NULL;
}

/* As tilecore_plan_make, but needs the GIL. Returns NULL with a Python error set that shows the arguments: ValueError,
 * MemoryError, or RuntimeError if import_tilecore() was not called. */
static inline tilecore_plan *tilecore_plan_new(int ndim, const ptrdiff_t *shape, const ptrdiff_t *repeats,
                                               ptrdiff_t itemsize)
{
    if (!tilecore_imported("tilecore_plan_new")) return NULL;
    return tilecore_api_table->plan_new(ndim, shape, repeats, itemsize);
}

/* Frees a plan; NULL is allowed. No thread may be using it. This and the next functions need no GIL and cannot fail. */
static inline void tilecore_plan_free(tilecore_plan *plan)
{
    if (plan != NULL) tilecore_api_table->plan_free(plan);
}

/* Writes the `ndim` extents of the output to `shape`. */
static inline void tilecore_plan_output_shape(const tilecore_plan *plan, ptrdiff_t *shape)
{
    tilecore_api_table->plan_output_shape(plan, shape);
}

/* Returns the bytes of the whole output. */
static inline ptrdiff_t tilecore_plan_nbytes(const tilecore_plan *plan)
{
    return tilecore_api_table->plan_nbytes(plan);
}

/* Tiles `src`, of the plan's shape, to `dst`, of its output's shape. */
static inline void tilecore_plan_execute(const tilecore_plan *plan, const void *src, const ptrdiff_t *src_strides,
                                         void *dst, const ptrdiff_t *dst_strides, int threads)
{
    tilecore_api_table->plan_execute(plan, src, src_strides, dst, dst_strides, threads);
}

/* Writes the region [start, stop) of the output to `dst`, of shape stop - start. The time depends only on the region.
 * 0 <= start <= stop <= output shape must hold on every axis; this is not checked. */
static inline void tilecore_plan_execute_region(const tilecore_plan *plan, const void *src,
                                                const ptrdiff_t *src_strides, void *dst, const ptrdiff_t *dst_strides,
                                                const ptrdiff_t *start, const ptrdiff_t *stop, int threads)
{
    tilecore_api_table->plan_execute_region(plan, src, src_strides, dst, dst_strides, start, stop, threads);
}

/* ---------------------------------------------------------------- Python's arrays */

/* tilecore.tile(array, repeats), for arrays of any kind. Needs the GIL. Returns a new reference, or NULL with the
 * error of tilecore.tile set, or a RuntimeError if import_tilecore() was not called. */
static inline PyObject *tilecore_array_tile(PyObject *array, PyObject *repeats)
{
    if (!tilecore_imported("tilecore_array_tile")) return NULL;
    return tilecore_api_table->array_tile(array, repeats);
}

#ifdef __cplusplus
}
#endif

#endif /* TILECORE_TILECORE_H */
