# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The fallback path: items that hold references, which a copy of bytes alone would not count.

A *walk* goes through a region of the tiling in the order of C, a run of the innermost axis at a time, and
knows for each item where it comes from. Every reference is counted as soon as it has been read, so nothing
that happens afterwards to the source can break a count:

    new array     each item is copied, and its references are counted
    `out`         each reference changes places with the one that was there; those that come out are
                  collected, a few hundred at most, and let go when what replaces them stands
    strings       StringDType packs each of them again, in the memory of the result

After some hundred thousand references other threads get a turn, and a signal is looked for. Whatever happens
there, or in code that runs as an old object dies: both arrays hold counted references or NULLs in every
place, at every time, and no memory but the few hundred places is taken.

A whole new tiling that repeats and is not small is quicker: the walk takes a copy of the source alone, which
nobody else knows; each reference in it is counted as often as it is to be copied, at once; then the
copies are written as the bytes they are, without the GIL, and no count can change meanwhile. If that is
interrupted, the counts are taken back, and the new array dies as bytes.

Without the GIL a critical section keeps two calls of tilecore apart that work on one array. NumPy's own
writes know of none: one that lets an object die just between the reading of a reference and its counting
breaks that count, as it would in NumPy.
"""

import math
import struct

import numpy

from tilecore._core.refusals import Refusal

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.pystate cimport PyThreadState
from cpython.ref cimport Py_DECREF
from libc.string cimport memcpy

from tilecore._core.execute cimport TILECORE_NOGIL_BYTES, Mode, execute, raise_pending
from tilecore._core.numpy_api cimport array_upon, try_array
from tilecore._core.plan cimport MAX_RANK, Nest, Place, Plan, place_note, plan_nest

cnp.import_array()


cdef extern from "Python.h":
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)


cdef extern from "numpy/arrayobject.h":
    enum: NPY_ARRAY_BEHAVED, NPY_VSTRING
    void PyDataType_SET_ELSIZE(cnp.dtype dtype, Py_ssize_t size) noexcept
    ctypedef struct npy_packed_static_string:
        pass
    ctypedef struct npy_string_allocator:
        pass
    ctypedef struct npy_static_string:
        size_t size
        const char *buf
    int NpyString_load(npy_string_allocator *allocator, const npy_packed_static_string *packed,
                       npy_static_string *unpacked) noexcept
    int NpyString_pack(npy_string_allocator *allocator, npy_packed_static_string *packed, const char *buf,
                       size_t size) noexcept
    int NpyString_pack_null(npy_string_allocator *allocator, npy_packed_static_string *packed) noexcept
    void acquire_two "NpyString_acquire_allocators" (size_t n, void *descriptors,
                                                     npy_string_allocator **allocators) noexcept
    void NpyString_release_allocators(size_t n, npy_string_allocator **allocators) noexcept


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
    TURN = 1 << 19      # references between two turns of other threads: a millisecond, 50 where none is cached
    OLD = 1 << 9        # references that wait to be let go
    ROUND = 1 << 20     # references counted at once: one by one they take a millisecond


# ---------------------------------------------------------------- a walk through a region of the tiling

cdef struct Step:               # an axis of the walk
    Py_ssize_t count            # items of the output
    Py_ssize_t extent           # of the source, behind which it starts again
    Py_ssize_t first            # in the source
    Py_ssize_t src, dst         # bytes to the next item
    Py_ssize_t place, index     # where the walk is, in the output and in the source


cdef struct Walk:
    int n                       # axes, innermost first
    Step step[MAX_RANK + 1]
    const char *src
    char *dst
    bint done


cdef void walk_init(Walk *walk, const Plan *plan, const Place *source, const Place *target,
                    const Py_ssize_t *start, const Py_ssize_t *shape) noexcept:
    """A walk through the region of `shape` that begins at `start`, or NULL for 0; it is not empty.

    A merged axis is like a merged loop of plan.pyx: it only continues the inner one.
    """
    cdef Py_ssize_t src_pitch = plan.itemsize, dst_pitch = plan.itemsize, src_step, dst_step, count, extent, first
    cdef Step *inner
    cdef int k
    walk.n = 0
    walk.src = source.data
    walk.dst = target.data
    walk.done = False
    for k in range(plan.ndim - 1, -1, -1):
        extent = plan.shape[k]
        count = shape[k]
        first = start[k] % extent if start != NULL else 0
        if first < 0:
            first += extent
        src_step = 0
        if extent != 1:  # a padded axis has extent 1 and no stride
            src_step = src_pitch if source.contiguous else source.strides[k - (plan.ndim - source.ndim)]
        dst_step = dst_pitch if target.contiguous else target.strides[k]
        src_pitch *= extent
        dst_pitch *= count
        walk.src += first * src_step
        if count == 1:
            continue
        if extent == 1 or first + count <= extent:  # it never starts again
            first, extent = 0, count
        if walk.n:
            inner = &walk.step[walk.n - 1]
            if (inner.first == 0 and inner.extent == inner.count and src_step == inner.src * inner.count
                    and dst_step == inner.dst * inner.count):
                inner.first = first * inner.count
                inner.index = inner.first
                inner.extent = extent * inner.count
                inner.count *= count
                continue
        walk.step[walk.n] = Step(count, extent, first, src_step, dst_step, 0, first)
        walk.n += 1
    if walk.n == 0:
        walk.step[0] = Step(1, 1, 0, 0, 0, 0, 0)
        walk.n = 1


cdef Py_ssize_t run_of(const Walk *walk, Py_ssize_t most) noexcept:
    """How many items, `most` or less, follow each other on the innermost axis."""
    cdef const Step *step = &walk.step[0]
    return min(most, step.count - step.place, step.extent - step.index)


cdef void advance(Walk *walk, Py_ssize_t n) noexcept:
    """Go past a run."""
    cdef Step *step
    cdef int k
    for k in range(walk.n):
        step = &walk.step[k]
        walk.src += n * step.src
        walk.dst += n * step.dst
        step.place += n
        step.index += n
        if step.index == step.extent:
            walk.src -= step.extent * step.src
            step.index = 0
        if step.place < step.count:
            return
        walk.src += (step.first - step.index) * step.src
        walk.dst -= step.count * step.dst
        step.index = step.first
        step.place = 0
        n = 1
    walk.done = True


# ---------------------------------------------------------------- arrays that other code may reach

cdef struct Extent:     # what the walk relies on
    const char *data
    Py_ssize_t nbytes


cdef Extent extent_of(cnp.ndarray array) noexcept:
    return Extent(cnp.PyArray_BYTES(array), cnp.PyArray_NBYTES(array))


cdef int check_unchanged(cnp.ndarray array, Extent before, str what) except -1:
    """Other code has run: `ndarray.resize` may have moved the items, or there are fewer."""
    cdef Extent now = extent_of(array)
    if now.data != before.data or now.nbytes != before.nbytes:
        raise Refusal(ValueError, "was resized while its references were copied", what)
    return 0


cdef int take_turn() except -1:
    """Let other threads run, and look for signals."""
    PyEval_RestoreThread(PyEval_SaveThread())
    PyErr_CheckSignals()
    return 0


# ---------------------------------------------------------------- objects

cdef struct Items:
    Py_ssize_t itemsize
    const Py_ssize_t *places    # of the references in an item
    Py_ssize_t count            # 0 where all objects of a structure lie in subarrays without an item
    PyObject **old              # room for those that are replaced, or NULL where there are none
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
    cdef Extent source = extent_of(array), target = extent_of(result)
    cdef Py_ssize_t n, work = 0, each = max(items.count, 1)
    while True:
        with cython.critical_section(array, result):
            n = write_piece(walk, items)
        work += n * each
        if items.old != NULL:
            tilecore_let_go(items.old, n * items.count)
        elif walk.done:
            return 0
        if work >= TURN:
            work = 0
            take_turn()
        if walk.done:
            return 0
        check_unchanged(array, source, "input")
        check_unchanged(result, target, "out")


cdef int write_pieces(Walk *walk, Items *items, cnp.ndarray array, cnp.ndarray result, bint is_new) except -1:
    cdef Py_ssize_t each = max(items.count, 1)
    items.old = NULL
    items.room = TURN // each + 1
    if not is_new:
        items.room = OLD // each + 1
        items.old = <PyObject **>PyMem_Malloc(items.room * each * sizeof(PyObject *))
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
    add_counts(at, n, items, plan.copies)
    plan_nest(plan, NULL, NULL, &nest)
    with nogil:
        status = execute(&nest, cnp.PyArray_BYTES(result), at, plan.nbytes, mode)
    if status < 0:
        tilecore_become_bytes(result, as_bytes)
        remove_counts(at, n, items, plan.copies)
        raise_pending()
    return 0


# ---------------------------------------------------------------- strings, and dtypes that NumPy alone knows

cdef int write_strings(Walk *walk, cnp.ndarray array, cnp.ndarray result) except -1:
    """Pack each string again: longer ones lie in memory of their array's dtype, to which there is a lock."""
    cdef cnp.dtype source = array.descr, target = result.descr
    cdef (void *)[2] dtypes = [<void *>source, <void *>target]
    cdef (npy_string_allocator *)[2] memory
    cdef Extent before = extent_of(array), after = extent_of(result)
    cdef Py_ssize_t n, i, work
    cdef bint packed = True
    while True:
        work = 0
        acquire_two(2, dtypes, memory)
        while packed and work < TURN and not walk.done:
            n = run_of(walk, TURN - work)
            for i in range(n):
                packed = pack_string(memory[1], walk.dst + i * walk.step[0].dst,
                                     memory[0], walk.src + i * walk.step[0].src, &work)
                if not packed or work >= TURN:
                    n = i + 1
                    break
            advance(walk, n)
        NpyString_release_allocators(2, memory)
        if not packed:
            raise MemoryError
        if walk.done:
            return 0
        take_turn()
        check_unchanged(array, before, "input")
        check_unchanged(result, after, "out")


cdef bint pack_string(npy_string_allocator *to, char *dst, npy_string_allocator *of, const char *src,
                      Py_ssize_t *work) noexcept:
    """False where there is no memory."""
    cdef npy_static_string text = npy_static_string(0, NULL)
    cdef int missing = NpyString_load(of, <const npy_packed_static_string *>src, &text)
    cdef char *copy
    cdef int status
    work[0] += 1 + <Py_ssize_t>(text.size // 64)
    if missing < 0:
        return False
    if missing:
        return NpyString_pack_null(to, <npy_packed_static_string *>dst) >= 0
    if to != of or text.size == 0:
        return NpyString_pack(to, <npy_packed_static_string *>dst, text.buf, text.size) >= 0
    copy = <char *>PyMem_Malloc(text.size)  # packing may move what lies in the same memory
    if copy == NULL:
        return False
    memcpy(copy, text.buf, text.size)
    status = NpyString_pack(to, <npy_packed_static_string *>dst, copy, text.size)
    PyMem_Free(copy)
    return status >= 0


cdef int write_assigned(Walk *walk, cnp.ndarray array, cnp.ndarray result) except -1:
    """Items that only their dtype can copy: a run at a time."""
    cdef Py_ssize_t n
    while not walk.done:
        n = run_of(walk, TURN)
        numpy.copyto(array_upon(result, 1, &n, &walk.step[0].dst, result.descr, walk.dst, NPY_ARRAY_BEHAVED),
                     array_upon(array, 1, &n, &walk.step[0].src, array.descr, <void *>walk.src, NPY_ARRAY_BEHAVED))
        advance(walk, n)
        take_turn()
    return 0


# ---------------------------------------------------------------- what results.pyx calls

def object_offsets(dtype, start):
    """Where in an item of `dtype` the references to objects lie."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        for k in range(math.prod(shape)):
            yield from object_offsets(base, start + k * base.itemsize)
    elif dtype.names is not None:
        for name in dtype.names:
            field = dtype.fields[name]
            yield from object_offsets(field[0], start + field[1])
    elif dtype.kind == "O":
        yield start


cdef int write_references(const Plan *plan, const Place *source, const Place *target, const Py_ssize_t *start,
                          const Py_ssize_t *shape, cnp.ndarray array, cnp.ndarray result, bint is_new,
                          Mode mode) except -1:
    """Fill `result`, with the GIL: all of the tiling, where `start` is NULL, or the region that begins there.

    `source` and `target` tell where the items of `array` and `result` lie, whatever shape other code has
    given the two meanwhile. `is_new`: `result` holds no references yet, and nobody else knows it. `shape`
    is the result's, without a 0. `mode` is for `execute`.
    """
    cdef Walk walk
    cdef Items items
    cdef Py_ssize_t only = 0
    cdef bytes places
    cdef int kind = cnp.PyArray_TYPE(result)
    if kind != cnp.NPY_OBJECT and kind != cnp.NPY_VOID:
        walk_init(&walk, plan, source, target, start, shape)
        return write_strings(&walk, array, result) if kind == NPY_VSTRING else write_assigned(&walk, array, result)
    items = Items(plan.itemsize, &only, 1, NULL, 0)
    if kind == cnp.NPY_VOID:
        offsets = list(object_offsets(result.dtype, 0))
        places = struct.pack(f"{len(offsets)}n", *offsets)
        items.places = <const Py_ssize_t *><const char *>places
        items.count = len(offsets)
    if is_new and start == NULL and plan.copies > 1 and plan.nbytes >= TILECORE_NOGIL_BYTES:
        return write_counted(plan, source, &items, array, result, mode)
    walk_init(&walk, plan, source, target, start, shape)
    return write_pieces(&walk, &items, array, result, is_new)
