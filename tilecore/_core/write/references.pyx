"""The fallback path: items that hold references. A copy of their bytes alone would not count these.

A walk goes through a region of the tiling, a run of the innermost axis at a time. Every reference is counted as soon as
it has been read, so a later change of the source breaks no count:

    new array     each item is copied, and its references are counted
    `out`         each reference changes places with the one that was there; a few hundred of the old ones are
                  collected at most, and let go when their successors stand
    strings       of variable length (numpy.dtypes.StringDType): each is packed again. A short one lies in its item; a
                  longer one in memory of the array's dtype, under a lock, which is held until others get a turn

Between two runs other code may get a turn: the walk keeps addresses and counts alone, and `check_held` checks that the
memory of both arrays is still there, and holds what it held. After some hundred thousand references other threads get a
turn, and a signal is looked for. Whatever happens there, or in code that runs as an old object dies: at every time both
arrays hold counted references or NULLs in every place.

A whole new tiling that repeats and is not small is written faster. The walk copies the source alone, to an array that
nobody else knows. Each reference in the copy is counted as often as it will stand in the result. Then the copies are
written as bytes, many of them without the GIL, and the first copy dies as bytes. If that is interrupted, the counts are
taken back, and the new array dies as bytes.

Without the GIL other threads may write to the source meanwhile, through NumPy, and read what was there before: see
counting.pxd. Two calls of tilecore may also write to one `out`, through any views: references change places by atomic
exchange, and each that comes out has one owner. NumPy knows nothing of that: where it writes to `out` meanwhile, counts
break, as where NumPy itself does so twice.
"""

import math

from tilecore._core.request.refusals import Refusal

cimport cython
cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from libc.string cimport memcpy

from tilecore._core.numpy_api cimport NPY_VSTRING, PyDataType_REFCHK, try_array
from tilecore._core.plan.nest cimport Nest, Step, Window, advance, nest_init, window_init
from tilecore._core.plan.plan cimport Sizes
from tilecore._core.request.arguments cimport check_held
from tilecore._core.request.places cimport Held, Place, held_note, place_note, place_strides, still_there
from tilecore._core.resources.memory cimport max_bytes, no_memory
from tilecore._core.write.counting cimport (
    TILECORE_FREE_THREADED, tilecore_add_references, tilecore_copy_references, tilecore_count, tilecore_enable,
    tilecore_exchange, tilecore_load, tilecore_remove_references, tilecore_stop_for, tilecore_try,
)
from tilecore._core.write.execute cimport TILECORE_NOGIL_BYTES, Mode, execute
from tilecore._core.write.signals cimport raise_pending

cnp.import_array()


cdef extern from "numpy/arrayobject.h":
    void PyDataType_SET_ELSIZE(cnp.dtype dtype, Py_ssize_t size) noexcept

    ctypedef struct npy_packed_static_string:
        pass
    ctypedef struct npy_string_allocator:
        pass
    ctypedef struct npy_static_string:
        size_t size
        const char *buf
    ctypedef struct PyArray_Descr:
        pass
    int NpyString_load(npy_string_allocator *allocator, const npy_packed_static_string *packed,
                       npy_static_string *unpacked) noexcept
    int NpyString_pack(npy_string_allocator *allocator, npy_packed_static_string *packed, const char *buf,
                       size_t size) noexcept
    int NpyString_pack_null(npy_string_allocator *allocator, npy_packed_static_string *packed) noexcept
    void acquire_two "NpyString_acquire_allocators" (size_t n, PyArray_Descr **descriptors,
                                                     npy_string_allocator **allocators) noexcept
    void NpyString_release_allocators(size_t n, npy_string_allocator **allocators) noexcept


cdef extern from *:
    """
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
    void tilecore_let_go(PyObject **old, Py_ssize_t n)
    void tilecore_become_bytes(cnp.ndarray array, cnp.dtype bytes) noexcept


cdef enum:
    TURN_REFERENCES = 1 << 19   # between two turns of other threads: they take a millisecond, 50 where none is cached
    OLD = 1 << 9            # references that wait to be let go
    OLD_STOPPED = 1 << 12   # as many if each time the world may be stopped
    ROUND = 1 << 20         # references counted at once: one by one they take a millisecond
    FEW_COPIES = 16         # references that are counted as they are copied; some, immortal ones, one by one
    COUNT_BYTES = 1 << 12   # of a new tiling that is counted first: the copy of the source takes half a microsecond
    FEW_ITEMS = 16          # in a row that is copied together with the next ones
    ITEM_BYTES = 16         # a string that is shorter lies in its item


# ---------------------------------------------------------------- a walk

cdef struct Walk:
    const Held *source          # the arrays that it reads and writes
    const Held *target
    Window window
    const char *src
    char *dst
    bint done


cdef void walk_init(Walk *walk, const Part *part) noexcept:
    cdef Window *window = &walk.window
    cdef int k
    window_init(window, part.sizes, place_strides(part.source), place_strides(part.target), part.start, part.shape)
    if window.n == 0:
        window.step[0] = Step(1, 1, 0, 0, 0, 0, 0)
        window.n = 1
    walk.source, walk.target, walk.done = part.array, part.result, False
    walk.src, walk.dst = part.source.data + window.src, part.target.data + window.dst
    for k in range(window.n):
        walk.src += window.step[k].first * window.step[k].src


cdef inline Py_ssize_t run_of(const Walk *walk, Py_ssize_t most) noexcept:
    """How many items, `most` or less, follow each other on the innermost axis."""
    cdef const Step *step = &walk.window.step[0]
    return min(most, step.count - step.place, step.extent - step.index)


cdef inline void go_past(Walk *walk, Py_ssize_t n) noexcept:
    walk.done = not advance(walk.window.step, walk.window.n, n, &walk.dst, &walk.src)


cdef int take_turn() except -1:
    """Let other threads run, and look for signals."""
    with nogil:
        pass
    PyErr_CheckSignals()
    return 0


# ---------------------------------------------------------------- objects

cdef struct Items:
    Py_ssize_t itemsize
    const Py_ssize_t *places    # of the references in an item, in their order
    Py_ssize_t count            # of these
    bint plain                  # an item is a reference and no more, always at rest
    Py_ssize_t more             # times that each is counted when it is copied; plain ones alone
    Py_ssize_t most             # items of a piece
    bint is_new                 # no references stand in the target yet
    bint aligned                # no reference can be seen half written
    bint at_rest                # no other thread can replace a reference: by the GIL, or the world is stopped
    bint stuck                  # the next reference can be counted at rest alone
    PyObject **old              # to be let go of
    Py_ssize_t n_old, room
    Py_ssize_t need             # room that an item may take


cdef inline bint count_reference(const char *at, PyObject **object, Items *items) noexcept:
    """Count the reference at `at`; False if that must be done at rest. See counting.pxd."""
    cdef PyObject *found
    if items.at_rest:
        object[0] = tilecore_count(at)
        if TILECORE_FREE_THREADED and object[0] != NULL:
            tilecore_enable(object[0])
        return True
    found = object[0] = tilecore_load(at)
    if found == NULL:
        return True
    if not tilecore_try(found):
        return False
    if tilecore_load(at) == found:
        return True
    # It was replaced before it was counted, and may be another object by now, in the same memory.
    items.old[items.n_old] = found
    items.n_old += 1
    return False


cdef Py_ssize_t copy_items(char *to, Py_ssize_t to_step, const char *at, Py_ssize_t step, Py_ssize_t n,
                           Items *items) noexcept:
    """Copy `n` items, or fewer if there is no room or this is stuck; how many."""
    cdef Py_ssize_t i, j, k, end
    cdef PyObject *object
    if items.plain:
        if items.is_new:
            tilecore_copy_references(to, to_step, at, step, n, items.more, NULL)
        else:
            n = min(n, items.room - items.n_old)
            tilecore_copy_references(to, to_step, at, step, n, 0, items.old + items.n_old)
            items.n_old += n
        return n
    for i in range(n):
        if items.n_old + items.need > items.room:
            return i
        end = 0
        for k in range(items.count):
            if items.places[k] > end:
                memcpy(to + end, at + end, items.places[k] - end)
            end = items.places[k] + <Py_ssize_t>sizeof(PyObject *)
            if not count_reference(at + items.places[k], &object, items):
                items.stuck = True
                for j in range(k if items.is_new else 0):  # take the item back
                    items.old[items.n_old] = tilecore_exchange(to + items.places[j], NULL)
                    items.n_old += 1
                return i
            if items.is_new:
                memcpy(to + items.places[k], &object, sizeof(PyObject *))
            else:
                items.old[items.n_old] = tilecore_exchange(to + items.places[k], object)
                items.n_old += 1
        if items.itemsize > end:
            memcpy(to + end, at + end, items.itemsize - end)
        to += to_step
        at += step
    return n


cdef Py_ssize_t write_piece(Walk *walk, Items *items) noexcept:
    """Write the next items, as many as there is room for; how many. Nothing here runs other code."""
    cdef Step *step = &walk.window.step[0]
    cdef Step *outer = step + (walk.window.n > 1)
    cdef Py_ssize_t n, row, rows, copied = 0, written = 0
    items.stuck = not (items.at_rest or items.aligned)
    while not items.stuck and not walk.done and written < items.most:
        n = run_of(walk, items.most - written)
        rows = 1
        if items.plain and n == step.count and n < FEW_ITEMS and outer != step:
            rows = (items.most - written if items.is_new else items.room - items.n_old) // n
            rows = max(1, min(rows, outer.count - outer.place, outer.extent - outer.index))
        for row in range(rows):
            copied = copy_items(walk.dst + row * outer.dst, step.dst, walk.src + row * outer.src, step.src, n, items)
        if rows > 1:
            walk.done = not advance(outer, walk.window.n - 1, rows, &walk.dst, &walk.src)
        elif copied > 0:
            go_past(walk, copied)
        written += (rows - 1) * n + copied
        if copied < n:
            break
    return written


cdef struct Stop:           # what is done while the world is stopped
    Walk *walk
    Items *items
    Py_ssize_t written


cdef int write_stopped(PyObject *nobody, void *argument) noexcept:
    cdef Stop *stop = <Stop *>argument
    stop.written = 0
    if still_there(stop.walk.source) and still_there(stop.walk.target):
        stop.items.at_rest = True
        stop.written = write_piece(stop.walk, stop.items)
        stop.items.at_rest = False
    return 0  # the next object need not be visited


cdef int write_pieces(Walk *walk, Items *items) except -1:
    cdef Stop stop = Stop(walk, items, 0)
    cdef Py_ssize_t n, work = 0
    while True:
        check_held(walk.source, walk.target)
        n = write_piece(walk, items)
        if items.stuck:
            tilecore_stop_for(write_stopped, &stop)
            n += stop.written
        work += n * max(items.count, 1)
        if items.n_old:
            n, items.n_old = items.n_old, 0
            tilecore_let_go(items.old, n)
        if walk.done:
            return 0
        if work >= TURN_REFERENCES:
            work = 0
            take_turn()


cdef bint is_aligned(const Walk *walk, const Items *items) noexcept:
    """Whether each reference of the walk lies, at both ends, where a pointer does."""
    cdef size_t bits = <size_t>walk.src | <size_t>walk.dst
    cdef Py_ssize_t k
    for k in range(walk.window.n):
        bits |= <size_t>walk.window.step[k].src | <size_t>walk.window.step[k].dst
    for k in range(items.count):
        bits |= <size_t>items.places[k]
    return bits % sizeof(PyObject *) == 0


cdef int write_objects(Walk *walk, Items *items, bint is_new) except -1:
    items.is_new = is_new
    items.at_rest = not TILECORE_FREE_THREADED
    items.aligned = items.count == 0 or is_aligned(walk, items)
    items.most = TURN_REFERENCES // max(items.count, 1) + 1
    items.need = items.count * (int(not is_new) + TILECORE_FREE_THREADED)
    items.old = NULL
    items.n_old = 0
    items.room = max(<Py_ssize_t>(OLD_STOPPED if TILECORE_FREE_THREADED else OLD), 2 * items.need)
    if items.need:
        items.old = <PyObject **>PyMem_Malloc(items.room * sizeof(PyObject *))
        if items.old == NULL:
            raise MemoryError
    try:
        write_pieces(walk, items)
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
    """Count every reference in the `n` items `copies` times; none if this is interrupted."""
    cdef Py_ssize_t i, k, counted = 0, more, work = 0
    while counted < copies:
        more = min(copies - counted, ROUND)
        for i in range(n):
            for k in range(items.count):
                work += tilecore_add_references(at + i * items.itemsize + items.places[k], more)
            if work >= TURN_REFERENCES:
                work = 0
                try:
                    take_turn()
                except BaseException:
                    remove_counts(at, i + 1, items, more)
                    remove_counts(at, n, items, counted)
                    raise
        counted += more
    return 0


cdef cnp.dtype new_bytes_dtype(Py_ssize_t itemsize):
    """As numpy.dtype((numpy.void, itemsize)), but that runs Python code that swallows a KeyboardInterrupt."""
    cdef cnp.dtype dtype = cnp.PyArray_DescrNewFromType(cnp.NPY_VOID)
    PyDataType_SET_ELSIZE(dtype, itemsize)
    return dtype


cdef int count_and_write(const Part *part, Items *items, Mode mode) except -1:
    cdef const Sizes *sizes = part.sizes
    cdef cnp.ndarray result = <cnp.ndarray>part.result.array
    cdef cnp.ndarray copy = try_array(sizes.ndim, sizes.shape, result.descr, NULL, 0)
    cdef Part first = part[0]
    cdef Walk walk
    cdef Held held
    cdef cnp.dtype as_bytes = new_bytes_dtype(sizes.itemsize)
    cdef Place place
    cdef Nest nest
    cdef const char *at
    cdef Py_ssize_t n
    cdef int status
    if copy is None:
        raise MemoryError
    place_note(&place, copy)
    held_note(&held, copy, sizes.input_nbytes)
    first.shape = &sizes.shape[0]
    first.result, first.target = &held, &place
    walk_init(&walk, &first)
    at = cnp.PyArray_BYTES(copy)
    n = cnp.PyArray_SIZE(copy)
    if items.plain and sizes.copies <= FEW_COPIES:
        items.more = sizes.copies - 1
    try:
        write_objects(&walk, items, True)
        add_counts(at, n, items, sizes.copies - 1 - items.more)
    except BaseException:
        remove_counts(at, n, items, items.more)  # what was not copied is NULL
        raise
    nest_init(sizes, NULL, NULL, &nest)
    if sizes.nbytes < TILECORE_NOGIL_BYTES:
        status = execute(&nest, cnp.PyArray_BYTES(result), at, sizes.nbytes, mode)
    else:
        with nogil:
            status = execute(&nest, cnp.PyArray_BYTES(result), at, sizes.nbytes, mode)
    if status < 0:
        tilecore_become_bytes(result, as_bytes)
        remove_counts(at, n, items, sizes.copies - 1)
        raise_pending()
    # Its own references are the last copy's. NumPy would want memory to let go of them.
    tilecore_become_bytes(copy, as_bytes)
    return 0


# ---------------------------------------------------------------- strings

cdef int write_strings(Walk *walk, bint is_new, Py_ssize_t *left) except -1:
    """Pack each string of the walk again; a Refusal if those outside the items take more than `left` bytes.

    `is_new`: the target's items hold nothing yet.
    """
    cdef (PyArray_Descr *)[2] dtypes = [<PyArray_Descr *>walk.source.dtype, <PyArray_Descr *>walk.target.dtype]
    cdef (npy_string_allocator *)[2] memory
    cdef Py_ssize_t n, i, work
    cdef bint packed = True
    # In the order of their addresses: else two calls might wait for each other's lock for ever.
    cdef int of = <size_t>dtypes[0] > <size_t>dtypes[1]
    dtypes[of], dtypes[1 - of] = <PyArray_Descr *>walk.source.dtype, <PyArray_Descr *>walk.target.dtype
    while True:
        work = 0
        check_held(walk.source, walk.target)
        acquire_two(2, dtypes, memory)
        while packed and work < TURN_REFERENCES and not walk.done:
            n = run_of(walk, TURN_REFERENCES - work)
            for i in range(n):
                packed = pack_string(memory[1 - of], walk.dst + i * walk.window.step[0].dst,
                                     memory[of], walk.src + i * walk.window.step[0].src, is_new, &work, left)
                if not packed or work >= TURN_REFERENCES:
                    n = i + 1
                    break
            go_past(walk, n)
        NpyString_release_allocators(2, memory)
        if left[0] < 0:
            raise Refusal(MemoryError, "the strings of the result would take more than the limit of "
                          f"{max_bytes} bytes (tilecore.set_max_bytes)")
        if not packed:
            raise MemoryError
        if walk.done:
            return 0
        take_turn()


cdef bint pack_string(npy_string_allocator *to, char *dst, npy_string_allocator *of, const char *src,
                      bint is_new, Py_ssize_t *work, Py_ssize_t *left) noexcept:
    """False where there is no memory or, with `left` below 0, no more is allowed."""
    cdef npy_static_string text = npy_static_string(0, NULL)
    cdef int missing = NpyString_load(of, <const npy_packed_static_string *>src, &text)
    cdef char *copy
    cdef int status
    work[0] += 1 + <Py_ssize_t>(text.size // 64)
    if missing < 0:
        return False
    if is_new and text.size > 0 and <size_t>text.buf - <size_t>src < sizeof(npy_static_string):
        memcpy(dst, src, sizeof(npy_static_string))  # it lies in its item: there is no more to it
        return True
    if text.size >= ITEM_BYTES:
        left[0] -= <Py_ssize_t>text.size
        if left[0] < 0:
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


# ---------------------------------------------------------------- where an item holds references

@cython.final
@cython.auto_pickle(False)
cdef class Leaves:
    """Which references an item of a dtype holds, and where."""

    def __dealloc__(self):
        PyMem_Free(self.places)


cdef Leaves leaves_of(cnp.dtype dtype):
    """Of a dtype that holds references, by NumPy's word. A Refusal if their kind is not known.

    This may run the caller's code: names of fields may be of a class derived from str.
    """
    if dtype.type_num == cnp.NPY_OBJECT:
        return OBJECT
    if dtype.type_num == NPY_VSTRING:
        return STRING
    return new_leaves(dtype)


cdef Leaves new_leaves(cnp.dtype dtype):
    cdef Leaves leaves = Leaves.__new__(Leaves)
    cdef Py_ssize_t itemsize = dtype.itemsize, end = 0, place
    cdef list places = []
    cdef bint known = add_leaves(places, dtype, 0, itemsize // <Py_ssize_t>sizeof(PyObject *))
    leaves.places = <Py_ssize_t *>PyMem_Malloc(len(places) * sizeof(Py_ssize_t))
    if leaves.places == NULL:
        raise MemoryError
    places.sort()  # fields may be listed in any order
    for place in places:
        if not end <= place <= itemsize - <Py_ssize_t>sizeof(PyObject *):  # in a dtype that was changed in place alone
            known = False
            break
        leaves.places[leaves.count] = place
        leaves.count += 1
        end = place + <Py_ssize_t>sizeof(PyObject *)
    if not known:
        raise Refusal(TypeError, f"holds references of an unknown kind, dtype {dtype}", "input")
    return leaves


cdef bint add_leaves(list places, cnp.dtype dtype, Py_ssize_t start, Py_ssize_t most) except -1:
    """Note the references of the part of an item at `start`, of this dtype; False for an unknown kind, or above `most`.

    There may be none: NumPy says of an empty subarray that it holds objects.
    """
    cdef Py_ssize_t first = len(places), copies, step, place, k
    cdef list found
    if not PyDataType_REFCHK(dtype):
        return True
    if cnp.PyDataType_HASSUBARRAY(dtype):
        base, shape = dtype.subdtype
        copies, step = math.prod(shape), base.itemsize
        if copies > 0 and not add_leaves(places, base, start, most):
            return False
        found = places[first:]
        if first + len(found) * copies > most:
            return False
        for k in range(1, copies if found else 0):
            places += [place + k * step for place in found]
        return True
    if cnp.PyDataType_HASFIELDS(dtype):
        fields = dtype.fields
        for name in dtype.names:
            field = fields[name]
            if not add_leaves(places, field[0], start + field[1], most):
                return False
        return True
    places.append(start)
    return dtype.type_num == cnp.NPY_OBJECT


cdef Leaves OBJECT = new_leaves(cnp.PyArray_DescrFromType(cnp.NPY_OBJECT))
cdef Leaves STRING = Leaves.__new__(Leaves)
STRING.is_string = True


# ---------------------------------------------------------------- a tiling, or a region

cdef int write_references(const Part *part, Leaves leaves, bint is_new, Mode mode, Py_ssize_t *text) except -1:
    """Write a part that is not empty, with the GIL.

    `leaves` are those of both dtypes. `is_new`: the result holds no references yet, and nobody else knows it. `mode` is
    for `execute`. Strings take no more bytes than `text`, which gets fewer by them.
    """
    cdef const Sizes *sizes = part.sizes
    cdef Walk walk
    cdef Items items
    try:
        if leaves.is_string:
            walk_init(&walk, part)
            return write_strings(&walk, is_new, text)
        items.itemsize, items.places, items.count = sizes.itemsize, leaves.places, leaves.count
        items.plain = not TILECORE_FREE_THREADED and leaves is OBJECT
        items.more = 0
        if is_new and part.start == NULL and sizes.copies > 1 and sizes.nbytes >= COUNT_BYTES:
            return count_and_write(part, &items, mode)
        walk_init(&walk, part)
        return write_objects(&walk, &items, is_new)
    except MemoryError:  # for references that wait, a copy of the source, a string
        raise no_memory(part.result.nbytes) from None
