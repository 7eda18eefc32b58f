# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The fallback path: items that hold references, which a copy of bytes alone would not count.

A walk (walk.pyx) goes through a region of the tiling. Every reference is counted as soon as it has been
read, so nothing that happens afterwards to the source can break a count:

    new array     each item is copied, and its references are counted
    `out`         each reference changes places with the one that was there; those that come out are
                  collected, a few hundred at most, and let go when what replaces them stands
    strings       each is packed again, in the memory of the result (strings.pyx)

After some hundred thousand references other threads get a turn, and a signal is looked for. Whatever happens
there, or in code that runs as an old object dies: both arrays hold counted references or NULLs in every
place, at every time, and no memory but the few hundred places is taken.

A whole new tiling that repeats and is not small is quicker: the walk takes a copy of the source alone, which
nobody else knows; each reference in it is counted as often as it is to be copied, at once, and those of the
copy itself are one of them; then the copies are written as the bytes they are, without the GIL, and no count
can change meanwhile. The copy dies as bytes. If that is interrupted, the counts are taken back, and the new
array dies as bytes.

Without the GIL a critical section keeps two calls of tilecore apart that work on one array. NumPy's own
writes know of none: one that lets an object die just between the reading of a reference and its counting
breaks that count, as it would in NumPy.
"""

import math

from tilecore._core.refusals import Refusal

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from tilecore._core.execute cimport TILECORE_NOGIL_BYTES, Mode, execute, raise_pending
from tilecore._core.memory cimport memory_limit
from tilecore._core.numpy_api cimport try_array
from tilecore._core.plan cimport PY_SSIZE_T_MAX, Nest, Place, Plan, place_note, plan_nest
from tilecore._core.strings cimport write_strings
from tilecore._core.walk cimport TURN, Walk, advance, check_places, run_of, take_turn, walk_init

cnp.import_array()


cdef extern from "numpy/arrayobject.h":
    enum: NPY_VSTRING
    void PyDataType_SET_ELSIZE(cnp.dtype dtype, Py_ssize_t size) noexcept


cdef extern from *:
    """
    /* References may lie anywhere, in a packed structure. NumPy reads NULL as None. */
    static PyObject *tilecore_load(const char *at)
    {
        PyObject *object;
        memcpy(&object, at, sizeof object);
        return object;
    }

    /* Copies n items to where no references are yet. */
    static void tilecore_copy_items(char *to, Py_ssize_t to_step, const char *from, Py_ssize_t from_step,
                                    Py_ssize_t n, Py_ssize_t itemsize, const Py_ssize_t *places, Py_ssize_t count)
    {
        for (; n > 0; n--, to += to_step, from += from_step) {
            if (count == 0 || itemsize != (Py_ssize_t)sizeof(PyObject *)) memcpy(to, from, (size_t)itemsize);
            for (Py_ssize_t k = 0; k < count; k++) {
                PyObject *object = tilecore_load(from + places[k]);
                Py_XINCREF(object); /* the very one that is stored, whatever has become of the source */
                memcpy(to + places[k], &object, sizeof object);
            }
        }
    }

    /* Copies n items, and moves the references that were there to `old`, which has room. */
    static void tilecore_exchange_items(char *to, Py_ssize_t to_step, const char *from, Py_ssize_t from_step,
                                        Py_ssize_t n, Py_ssize_t itemsize, const Py_ssize_t *places,
                                        Py_ssize_t count, PyObject **old)
    {
        for (; n > 0; n--, to += to_step, from += from_step, old += count) {
            for (Py_ssize_t k = 0; k < count; k++) old[k] = tilecore_load(to + places[k]);
            tilecore_copy_items(to, to_step, from, from_step, 1, itemsize, places, count);
        }
    }

    /* n references more (or less, where the object keeps some) to what `at` points to; the steps that it
     * took. Counting one by one costs as much as the copies do. Py_SET_REFCNT leaves immortal objects
     * alone. Where counts are kept elsewhere (free threading), are traced, or might reach the range that
     * means immortal, one by one. */
    #if !defined(Py_GIL_DISABLED) && !defined(Py_REF_DEBUG) && SIZEOF_VOID_P >= 8
    #define TILECORE_COUNTS_AT_ONCE(object, n) ((n) < (1 << 28) && Py_REFCNT(object) < (1 << 28))
    #else
    #define TILECORE_COUNTS_AT_ONCE(object, n) 0
    #endif
    static Py_ssize_t tilecore_add_references(const char *at, Py_ssize_t n)
    {
        PyObject *object = tilecore_load(at);
        if (object == NULL) return 1;
        if (TILECORE_COUNTS_AT_ONCE(object, n)) {
            Py_SET_REFCNT(object, Py_REFCNT(object) + n);
            return 1;
        }
        for (Py_ssize_t i = 0; i < n; i++) Py_INCREF(object);
        return n;
    }
    static void tilecore_remove_references(const char *at, Py_ssize_t n)
    {
        PyObject *object = tilecore_load(at);
        if (object == NULL) return;
        if (TILECORE_COUNTS_AT_ONCE(object, n)) {
            Py_SET_REFCNT(object, Py_REFCNT(object) - n);
            return;
        }
        for (Py_ssize_t i = 0; i < n; i++) Py_DECREF(object);
    }

    /* Lets go of references, of which each may run code. */
    static void tilecore_let_go(PyObject **old, Py_ssize_t n)
    {
        for (Py_ssize_t i = 0; i < n; i++) Py_XDECREF(old[i]);
    }

    /* An array whose memory holds bytes, as far as NumPy knows: as it dies it lets go of nothing. */
    static void tilecore_become_bytes(PyArrayObject *array, PyArray_Descr *bytes)
    {
        PyArrayObject_fields *fields = (PyArrayObject_fields *)array;
        PyArray_Descr *before = fields->descr;
        Py_INCREF(bytes);
        fields->descr = bytes;
        Py_DECREF(before);
    }
    """
    void tilecore_copy_items(char *to, Py_ssize_t to_step, const char *source, Py_ssize_t from_step, Py_ssize_t n,
                             Py_ssize_t itemsize, const Py_ssize_t *places, Py_ssize_t count) noexcept
    void tilecore_exchange_items(char *to, Py_ssize_t to_step, const char *source, Py_ssize_t from_step,
                                 Py_ssize_t n, Py_ssize_t itemsize, const Py_ssize_t *places, Py_ssize_t count,
                                 PyObject **old) noexcept
    Py_ssize_t tilecore_add_references(const char *at, Py_ssize_t n) noexcept
    void tilecore_remove_references(const char *at, Py_ssize_t n) noexcept
    void tilecore_let_go(PyObject **old, Py_ssize_t n)
    void tilecore_become_bytes(cnp.ndarray array, cnp.dtype bytes) noexcept


cdef enum:
    OLD = 1 << 9        # references that wait to be let go
    ROUND = 1 << 20     # references counted at once: one by one they take a millisecond


# ---------------------------------------------------------------- objects

cdef struct Items:
    Py_ssize_t itemsize
    const Py_ssize_t *places    # of the references in an item
    Py_ssize_t count
    PyObject **old              # room for those that are replaced; NULL where there are none
    Py_ssize_t room             # in items


cdef Py_ssize_t write_piece(Walk *walk, const Items *items) noexcept:
    """The next items, as many as there is room for; how many. Nothing here runs other code."""
    cdef Py_ssize_t n, written = 0
    while not walk.done and written < items.room:
        n = run_of(walk, items.room - written)
        if items.old == NULL:
            tilecore_copy_items(walk.dst, walk.step[0].dst, walk.src, walk.step[0].src, n, items.itemsize,
                                items.places, items.count)
        else:
            tilecore_exchange_items(walk.dst, walk.step[0].dst, walk.src, walk.step[0].src, n, items.itemsize,
                                    items.places, items.count, items.old + written * items.count)
        advance(walk, n)
        written += n
    return written


cdef int write_objects(Walk *walk, const Items *items, cnp.ndarray array, cnp.ndarray result) except -1:
    cdef Py_ssize_t n, work = 0
    while True:
        with cython.critical_section(array, result):
            check_places(walk, array, result)
            n = write_piece(walk, items)
        work += n * max(items.count, 1)
        if items.old != NULL:
            tilecore_let_go(items.old, n * items.count)
        elif walk.done:
            return 0
        if work >= TURN:
            work = 0
            take_turn()
        if walk.done:
            return 0


cdef int write_pieces(Walk *walk, Items *items, cnp.ndarray array, cnp.ndarray result, bint is_new) except -1:
    items.old = NULL
    items.room = TURN // max(items.count, 1) + 1
    if not is_new:
        items.room = OLD // max(items.count, 1) + 1
        items.old = <PyObject **>PyMem_Malloc(items.room * items.count * sizeof(PyObject *))
        if items.old == NULL:
            raise MemoryError
    try:
        write_objects(walk, items, array, result)
    finally:
        PyMem_Free(items.old)
    return 0


# ---------------------------------------------------------------- a new tiling, counted first

cdef void remove_counts(const char *at, Py_ssize_t n, const Items *items, Py_ssize_t copies) noexcept:
    cdef Py_ssize_t i, k
    for i in range(n):
        for k in range(items.count):
            tilecore_remove_references(at + i * items.itemsize + items.places[k], copies)


cdef int add_counts(const char *at, Py_ssize_t n, const Items *items, Py_ssize_t copies) except -1:
    """Count every reference in the `n` items `copies` times; none where this is interrupted."""
    cdef Py_ssize_t i, k, counted = 0, more, work = 0
    while counted < copies:
        more = min(copies - counted, ROUND)
        for i in range(n):
            for k in range(items.count):
                work += tilecore_add_references(at + i * items.itemsize + items.places[k], more)
            if work >= TURN:
                work = 0
                try:
                    take_turn()
                except BaseException:
                    remove_counts(at, i + 1, items, more)
                    remove_counts(at, n, items, counted)
                    raise
        counted += more
    return 0


cdef cnp.dtype bytes_dtype(Py_ssize_t itemsize):
    """numpy.dtype((numpy.void, itemsize)), which runs Python code that swallows a KeyboardInterrupt."""
    cdef cnp.dtype dtype = cnp.PyArray_DescrNewFromType(cnp.NPY_VOID)
    PyDataType_SET_ELSIZE(dtype, itemsize)
    return dtype


cdef int write_counted(const Plan *plan, const Place *source, Items *items, cnp.ndarray array,
                       cnp.ndarray result, Mode mode) except -1:
    cdef PyObject *copy
    cdef cnp.ndarray held
    cdef cnp.dtype as_bytes = bytes_dtype(plan.itemsize)
    cdef Walk walk
    cdef Place place
    cdef Nest nest
    cdef const char *at
    cdef Py_ssize_t n
    cdef int status
    copy = try_array(plan.ndim, plan.shape, result.descr, NULL, 0)
    if copy == NULL:
        raise_pending()
    held = <cnp.ndarray>copy
    Py_DECREF(held)
    place_note(&place, held)
    walk_init(&walk, plan, source, &place, NULL, plan.shape)
    write_pieces(&walk, items, array, held, True)
    at = cnp.PyArray_BYTES(held)
    n = cnp.PyArray_SIZE(held)
    add_counts(at, n, items, plan.copies - 1)
    plan_nest(plan, NULL, NULL, &nest)
    with nogil:
        status = execute(&nest, cnp.PyArray_BYTES(result), at, plan.nbytes, mode)
    if status < 0:
        tilecore_become_bytes(result, as_bytes)
        remove_counts(at, n, items, plan.copies - 1)
        raise_pending()
    # Its own references are the last copy's. NumPy would want memory to let go of them.
    tilecore_become_bytes(held, as_bytes)
    return 0


# ---------------------------------------------------------------- what results.pyx calls

cdef Py_ssize_t object_offsets(dtype, Py_ssize_t start, Py_ssize_t *places) except -1:
    """How many references to objects an item of `dtype` holds; where, from `start` on, unless that is NULL.

    There may be none: of an empty subarray NumPy says that it holds objects.
    """
    cdef Py_ssize_t n = 0, copies, step, i, k
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        copies, step = math.prod(shape), base.itemsize
        if copies == 0:
            return 0
        n = object_offsets(base, start, places)
        if places != NULL:
            for k in range(1, copies):
                for i in range(n):
                    places[k * n + i] = places[i] + k * step
        return n * copies
    if dtype.names is not None:
        for name in dtype.names:
            field = dtype.fields[name]
            n += object_offsets(field[0], start + field[1], places + n if places != NULL else NULL)
        return n
    if dtype.kind != "O":
        return 0
    if places != NULL:
        places[0] = start
    return 1


cdef int write_items(const Plan *plan, const Place *source, const Place *target, const Py_ssize_t *start,
                     const Py_ssize_t *shape, cnp.ndarray array, cnp.ndarray result, bint is_new, Mode mode,
                     const Py_ssize_t *places, Py_ssize_t count) except -1:
    cdef Walk walk
    cdef Items items = Items(plan.itemsize, places, count, NULL, 0)
    if is_new and start == NULL and plan.copies > 1 and plan.nbytes >= TILECORE_NOGIL_BYTES:
        return write_counted(plan, source, &items, array, result, mode)
    walk_init(&walk, plan, source, target, start, shape)
    return write_pieces(&walk, &items, array, result, is_new)


cdef int write_references(const Plan *plan, const Place *source, const Place *target, const Py_ssize_t *start,
                          const Py_ssize_t *shape, cnp.ndarray array, cnp.ndarray result, bint is_new,
                          Mode mode) except -1:
    """Fill `result`, with the GIL: all of the tiling, where `start` is NULL, or the region that begins there.

    `start` counts in any number of repeats, and may be negative. `source` and `target` tell where the items
    of `array` and `result` lie, whatever shape other code has given the two meanwhile. `is_new`: `result`
    holds no references yet, and nobody else knows it. `shape` is the result's, without a 0. `mode` is for
    `execute`.
    """
    cdef Walk walk
    cdef Py_ssize_t only = 0, count
    cdef Py_ssize_t *places
    cdef int kind = cnp.PyArray_TYPE(result)
    if kind == cnp.NPY_OBJECT:
        return write_items(plan, source, target, start, shape, array, result, is_new, mode, &only, 1)
    if kind == NPY_VSTRING:
        walk_init(&walk, plan, source, target, start, shape)
        return write_strings(&walk, array, result, memory_limit() if is_new else PY_SSIZE_T_MAX)
    if kind != cnp.NPY_VOID:
        raise Refusal(TypeError, f"holds references of an unknown kind, dtype {result.dtype}", "input")
    count = object_offsets(result.dtype, 0, NULL)
    places = <Py_ssize_t *>PyMem_Malloc((count + 1) * sizeof(Py_ssize_t))
    if places == NULL:
        raise MemoryError
    try:
        object_offsets(result.dtype, 0, places)
        write_items(plan, source, target, start, shape, array, result, is_new, mode, places, count)
    finally:
        PyMem_Free(places)
    return 0
