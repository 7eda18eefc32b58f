# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The array functions: what is asked for is read and checked here, then planned and executed.

`tile` is a compiled builtin with nothing in between: a plain array and a tuple of ints cost an
allocation and a copy. All that is rarer goes through functions out of line.
"""

import operator
import reprlib
import sys

import numpy

cimport numpy as cnp
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from tilecore._execute cimport TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES, Mode, execute
from tilecore._memory cimport memory_limit, new_array
from tilecore._plan cimport MAX_RANK, PLAN_OK, Nest, plan_init, plan_nest, plan_problem, tilecore_plan

cnp.import_array()


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) noexcept
    PyObject *PyTuple_GET_ITEM(object tuple, Py_ssize_t i) noexcept
    Py_ssize_t PyTuple_GET_SIZE(object tuple) noexcept


cdef extern from "numpy/arrayobject.h":
    bint PyArray_CheckExact(object a) noexcept
    bint PyArray_IS_C_CONTIGUOUS(cnp.ndarray a) noexcept
    bint PyDataType_REFCHK(cnp.dtype dtype) noexcept
    void PyArray_Item_INCREF(char *item, cnp.dtype dtype) noexcept
    enum: NPY_ARRAY_CARRAY_RO


cdef extern from *:
    """
    /* n references more to one object. Counting them one by one costs as much as the copies do.
     * Py_SET_REFCNT leaves immortal objects alone. Where counts are kept elsewhere (free
     * threading), are traced, or might reach the range that means immortal, one by one. */
    static void tilecore_add_references(PyObject *object, Py_ssize_t n)
    {
        if (object == NULL) return; /* NumPy reads it as None */
    #if !defined(Py_GIL_DISABLED) && !defined(Py_REF_DEBUG) && SIZEOF_VOID_P >= 8
        if (n < (1 << 28) && Py_REFCNT(object) < (1 << 28)) {
            Py_SET_REFCNT(object, Py_REFCNT(object) + n);
            return;
        }
    #endif
        while (n-- > 0) Py_INCREF(object);
    }
    """
    void tilecore_add_references(PyObject *object, Py_ssize_t n) noexcept


# ---------------------------------------------------------------- reading what was asked for

# Shows what was given, but no more than a line of it, whatever it holds.
brief = reprlib.Repr()
brief.maxlist = brief.maxtuple = 16
brief.maxlong = 40
brief.maxother = 80


cdef refuse(kind, name, what, source, reps):
    """The one form of every error: who refuses, why, and what was asked for.

    `source` is the input array, or its shape where that is all there is, or None.
    """
    asked = ""
    if isinstance(source, numpy.ndarray):
        asked = f"input shape {source.shape}, dtype {source.dtype}, "
    elif source is not None:
        asked = f"input shape {source}, "
    return kind(f"{name}: {what}; {asked}repeats {brief.repr(reps)}")


cdef int read_repeats(reps, Py_ssize_t *repeats, str name, source) except -1:
    """Fill `repeats` (room for MAX_RANK) and return how many. `source` as in refuse.

    The usual kinds here; everything else, and every error, in read_integers.
    """
    cdef Py_ssize_t i, n = 1
    cdef PyObject *item
    cdef int overflow = 0
    cdef bint usual
    if type(reps) is tuple:
        n = PyTuple_GET_SIZE(reps)
        usual = n <= MAX_RANK
        i = 0
        while usual and i < n:
            item = PyTuple_GET_ITEM(reps, i)
            usual = PyLong_CheckExact(<object>item)
            if usual:
                repeats[i] = PyLong_AsLongLongAndOverflow(<object>item, &overflow)
                usual = not overflow and repeats[i] >= 0
            i += 1
    else:
        usual = PyLong_CheckExact(reps)
        if usual:
            repeats[0] = PyLong_AsLongLongAndOverflow(reps, &overflow)
            usual = not overflow and repeats[0] >= 0
    if usual:
        return <int>n
    return read_integers(reps, repeats, "repeats", name, source, reps)


cdef int read_integers(given, Py_ssize_t *values, str what, str name, source, reps) except -1:
    """By operator.index, else by iteration: at most 65 items drawn, __len__ never asked."""
    cdef list integers = []
    cdef Py_ssize_t k, rank
    try:
        integers.append(operator.index(given))
    except TypeError:
        try:
            items = iter(given)
        except TypeError:
            raise refuse(TypeError, name, f"{what} must be an integer or an iterable of integers, "
                         f"got {type(given).__name__}", source, reps) from None
        for item in items:
            try:
                integers.append(operator.index(item))
            except TypeError:
                if isinstance(item, (list, tuple)) or getattr(item, "ndim", 0):
                    raise refuse(ValueError, name, f"{what} must be an integer or one-dimensional, "
                                 f"but item {len(integers)} is a {type(item).__name__}", source, reps) from None
                raise refuse(TypeError, name, f"{what} must be integers, but item {len(integers)} is "
                             f"of type {type(item).__name__}", source, reps) from None
            if len(integers) > MAX_RANK:
                raise refuse(ValueError, name, f"more than {MAX_RANK} {what}, NumPy's largest rank", source, reps)
    # Axes are counted in the output, whose rank is the larger of the two.
    rank = len(integers)
    if source is not None:
        rank = max(rank, len(source.shape if isinstance(source, numpy.ndarray) else source))
    for k, value in enumerate(integers, rank - len(integers)):
        if value < 0:
            raise refuse(ValueError, name, f"{what} must not be negative, got {value} for axis {k}", source, reps)
    for k, value in enumerate(integers):
        if value > PY_SSIZE_T_MAX:
            raise refuse(ValueError, name, f"axis {rank - len(integers) + k} overflows: {value} is "
                         f"more than {PY_SSIZE_T_MAX}", source, reps)
        values[k] = value
    return <int>len(integers)


cdef int read_threads(threads) except -1:
    """The count of threads asked for, or 0 for the default."""
    if threads is None:
        return 0
    try:
        count = operator.index(threads)
    except TypeError:
        raise TypeError("tile: threads must be an integer of at least 1 or None, got "
                        f"{threads!r:.80} of type {type(threads).__name__}") from None
    if count < 1:
        raise ValueError(f"tile: threads must be at least 1, got {count}")
    return <int>min(count, 1 << 20)


cdef cnp.ndarray as_plain_array(a):
    """`a` as a plain ndarray, or None where its own type decides what tiling it gives."""
    if isinstance(a, numpy.memmap):
        return numpy.asarray(a)
    if hasattr(type(a), "__array_function__") and not PyArray_CheckExact(a):
        return None
    return numpy.asarray(a)


cdef int extents(cnp.ndarray a, size_t *low, size_t *high) noexcept:
    """The addresses of the first byte of `a` and of the one behind its last; 0 where it has none."""
    cdef size_t at = <size_t>cnp.PyArray_DATA(a)
    cdef Py_ssize_t span
    cdef int k
    low[0] = high[0] = at
    high[0] += cnp.PyArray_ITEMSIZE(a)
    for k in range(cnp.PyArray_NDIM(a)):
        if cnp.PyArray_DIM(a, k) == 0:
            return 0
        span = (cnp.PyArray_DIM(a, k) - 1) * cnp.PyArray_STRIDE(a, k)
        if span < 0:
            low[0] += span
        else:
            high[0] += span
    return low[0] < high[0]


cdef bint shares_bytes(cnp.ndarray a, cnp.ndarray b) except -1:
    cdef size_t a_low, a_high, b_low, b_high
    if not extents(a, &a_low, &a_high) or not extents(b, &b_low, &b_high):
        return False
    if a_high <= b_low or b_high <= a_low:
        return False
    try:
        return numpy.shares_memory(a, b, max_work=100000)
    except numpy.exceptions.TooHardError:
        return True


cdef int check_out(out, const tilecore_plan *plan, array, reps) except -1:
    """Refuse an `out` that is not exactly the result's place."""
    cdef int k
    cdef bint fits
    if not isinstance(out, numpy.ndarray) or is_masked(out):
        raise refuse(TypeError, "tile", f"out must be a NumPy array, got {type(out).__name__}", array, reps)
    fits = cnp.PyArray_NDIM(out) == plan.ndim
    for k in range(plan.ndim):
        fits = fits and cnp.PyArray_DIM(out, k) == plan.output[k]
    if not fits:
        raise refuse(ValueError, "tile", f"out must have shape {output_tuple(plan)}, got {out.shape}", array, reps)
    if out.dtype is not array.dtype and out.dtype != array.dtype:
        raise refuse(TypeError, "tile", f"out must have dtype {array.dtype}, got {out.dtype}", array, reps)
    if not PyArray_IS_C_CONTIGUOUS(out):
        raise refuse(ValueError, "tile", f"out must be C-contiguous, got strides {out.strides} "
                     f"for shape {out.shape}", array, reps)
    if not out.flags.writeable:
        raise refuse(ValueError, "tile", "out must be writeable, got a read-only array", array, reps)
    if shares_bytes(array, out):
        raise refuse(ValueError, "tile", "out must not share memory with the input", array, reps)
    return 0


cdef int check_size(Py_ssize_t nbytes, str name, source, reps) except -1:
    if nbytes > memory_limit():
        raise refuse(MemoryError, name, f"the result would take {nbytes} bytes, more than the limit of "
                     f"{memory_limit()} bytes (tilecore.set_max_bytes)", source, reps)
    return 0


cdef tuple output_tuple(const tilecore_plan *plan):
    return tuple([plan.output[k] for k in range(plan.ndim)])


# ---------------------------------------------------------------- tile

def tile(a, reps, out=None, *, threads=None):
    """Repeat a whole array along its axes, as `numpy.tile` does.

    >>> import numpy, tilecore
    >>> x = numpy.array([[1, 2, 3],
    ...                  [4, 5, 6]])             # shape (2, 3)
    >>> tilecore.tile(x, (2, 2))                 # shape (4, 6)
    array([[1, 2, 3, 1, 2, 3],
           [4, 5, 6, 4, 5, 6],
           [1, 2, 3, 1, 2, 3],
           [4, 5, 6, 4, 5, 6]])
    >>> tilecore.tile(x, 2).shape                # the shorter of shape and reps gets 1s in front
    (2, 6)
    >>> tilecore.tile([7, 8], (2, 1, 2)).shape
    (2, 1, 4)

    ``out[i] = a[i mod a.shape]`` on every axis, bit for bit.

    Parameters
    ----------
    a : array_like
        Any shape, any dtype, any strides. A `numpy.ma.MaskedArray` is tiled with its mask; other
        subclasses, and arrays of other libraries with ``__array_function__``, give what
        `numpy.tile` makes of them. `numpy.memmap` counts as a plain array.
    reps : int or iterable of int
        Repeats per axis, 0 or more, at most 64 of them.
    out : numpy.ndarray, optional
        Where to write: of exactly the result's shape and dtype, C-contiguous, writeable, sharing no
        memory with `a`. Untouched where an error is raised before writing starts, which every
        error but a KeyboardInterrupt is.
    threads : int, optional
        Write a large result by at most this many threads; default: see `get_num_threads`.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new, writeable, C-contiguous array that never shares memory with
        `a`. ``shape[k] * reps[k]`` long on axis ``k``; dtype as `a`.

    Raises
    ------
    TypeError
        `reps` that are not integers (1.0 is none), an `out` that is no array or of another dtype.
    ValueError
        A negative repeat, more than 64 repeats, sizes that overflow 64 bits, an `out` of another
        shape or layout or that overlaps `a`, `threads` below 1.
    MemoryError
        A result larger than `get_max_bytes()`. Nothing has been allocated then.

    Notes
    -----
    Where it differs from `numpy.tile`, always towards safety: a negative repeat is an error also
    on empty input; ``1.0`` is not taken for 1; narrow NumPy integers never wrap
    (``numpy.uint8(100)`` on 3 elements gives 300); reps of rank 2 are an error; the result is
    C-contiguous and fresh whatever the reps; ``(100, 100)`` by ``(200, 0)`` allocates nothing.

    Source: NumPy 2, `numpy.tile`.
    """
    cdef tilecore_plan plan
    cdef Py_ssize_t repeats[MAX_RANK + 1]
    cdef cnp.ndarray array, result
    cdef int nreps, status, nthreads = 0
    if PyArray_CheckExact(a):
        array = a
    else:
        array = as_plain_array(a)
        if array is None:
            return tile_other(a, reps, out, threads)
    nreps = read_repeats(reps, repeats, "tile", array)
    if threads is not None:
        nthreads = read_threads(threads)
    # Only now, for reading `reps` may have run code that gave the array another shape.
    status = plan_init(&plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), nreps, repeats,
                       cnp.PyArray_ITEMSIZE(array))
    if status != PLAN_OK:
        raise refuse(ValueError, "tile", plan_problem(&plan, status), array, reps)
    if out is None:
        if plan.nbytes > memory_limit():
            check_size(plan.nbytes, "tile", array, reps)
        result = new_array(plan.ndim, plan.output, array.descr)
    else:
        check_out(out, &plan, array, reps)
        result = out
    if plan.nbytes != 0:
        if PyDataType_REFCHK(array.descr):
            write_references(&plan, array, result, out is not None)
        else:
            write(&plan, array, cnp.PyArray_BYTES(result), nthreads, out is not None)
    return result


cdef int write(const tilecore_plan *plan, cnp.ndarray array, char *dst, int threads, bint warm) except -1:
    """Plain bytes. With the GIL; a large copy releases it."""
    cdef Nest nest
    cdef const char *src = cnp.PyArray_BYTES(array)
    cdef const Py_ssize_t *strides = NULL
    cdef Mode mode = Mode(1, warm, False)
    cdef int status
    if not PyArray_IS_C_CONTIGUOUS(array):
        strides = <Py_ssize_t *>cnp.PyArray_STRIDES(array)
    plan_nest(plan, cnp.PyArray_NDIM(array), strides, &nest)
    if plan.nbytes < TILECORE_NOGIL_BYTES:
        execute(&nest, dst, src, plan.nbytes, mode)
        return 0
    if plan.nbytes >= TILECORE_THREAD_BYTES:
        mode.threads = threads if threads > 0 else 1
        mode.poll = True
    with nogil:
        status = execute(&nest, dst, src, plan.nbytes, mode)
    return status


# ---------------------------------------------------------------- the fallback path

cdef int write_references(const tilecore_plan *plan, cnp.ndarray array, cnp.ndarray result,
                          bint given) except -1:
    """Items that hold references, with the GIL. `given`: the result is the caller's `out`."""
    cdef Nest nest
    cdef Mode mode = Mode(1, False, False)
    cdef Py_ssize_t i
    cdef cnp.ndarray fresh, source
    cdef char *item
    cdef int kind = cnp.PyArray_TYPE(array)
    if given:
        # What `out` refers to may run code when it is let go, so that happens last, in NumPy.
        fresh = new_array(plan.ndim, <Py_ssize_t *>plan.output, array.descr)
        write_references(plan, array, fresh, False)
        numpy.copyto(result, fresh)
        return 0
    if kind != cnp.NPY_OBJECT and kind != cnp.NPY_VOID:
        write_assigned(plan, array, result)
        return 0
    source = cnp.PyArray_FROM_OF(array, NPY_ARRAY_CARRAY_RO)
    plan_nest(plan, cnp.PyArray_NDIM(source), NULL, &nest)
    # From the first new reference to the last copied pointer nothing can raise or run other code.
    if kind == cnp.NPY_OBJECT:
        for i in range(cnp.PyArray_SIZE(source)):
            tilecore_add_references((<PyObject **>cnp.PyArray_DATA(source))[i], plan.copies)
        execute(&nest, cnp.PyArray_BYTES(result), cnp.PyArray_BYTES(source), plan.nbytes, mode)
    else:
        execute(&nest, cnp.PyArray_BYTES(result), cnp.PyArray_BYTES(source), plan.nbytes, mode)
        item = cnp.PyArray_BYTES(result)
        for i in range(cnp.PyArray_SIZE(result)):
            PyArray_Item_INCREF(item, array.descr)
            item += plan.itemsize
    return 0


cdef write_assigned(const tilecore_plan *plan, cnp.ndarray array, cnp.ndarray result):
    """Items that only their dtype can copy (StringDType): one assignment, no intermediate.

    Every axis becomes two, repeats and extent; those of length 1 go, so that at most 63 are left.
    """
    cdef int k
    shape, source = [], []
    for k in range(plan.ndim):
        if plan.repeats[k] > 1:
            shape.append(plan.repeats[k])
            source.append(1)
        if plan.shape[k] > 1:
            shape.append(plan.shape[k])
            source.append(plan.shape[k])
    numpy.copyto(result.reshape(shape), array.reshape(source))


# ---------------------------------------------------------------- arrays of other types

cdef bint is_masked(a):
    """Whether `a` is a masked array; without importing numpy.ma, where nobody else has."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(a, ma.MaskedArray)


cdef tile_other(a, reps, out, threads):
    """Subclasses of ndarray, and arrays of other libraries."""
    cdef tilecore_plan plan
    cdef Py_ssize_t repeats[MAX_RANK + 1]
    cdef int nreps, status, k
    source = a if isinstance(a, numpy.ndarray) else None
    if out is not None:
        raise refuse(TypeError, "tile", f"out is for plain arrays, the input is a {type(a).__name__}",
                     source, reps)
    nreps = read_repeats(reps, repeats, "tile", source)
    read_threads(threads)
    counts = tuple([repeats[k] for k in range(nreps)])
    if source is not None:
        status = plan_init(&plan, cnp.PyArray_NDIM(a), <Py_ssize_t *>cnp.PyArray_DIMS(a), nreps, repeats, cnp.PyArray_ITEMSIZE(a))
        if status != PLAN_OK:
            raise refuse(ValueError, "tile", plan_problem(&plan, status), source, reps)
        check_size(plan.nbytes, "tile", source, reps)
    if is_masked(a) and type(a) is sys.modules["numpy.ma"].MaskedArray:
        ma = sys.modules["numpy.ma"]
        mask = ma.getmask(a)
        return ma.MaskedArray(
            tile(ma.getdata(a, subok=False), counts, threads=threads),
            mask=mask if mask is ma.nomask else tile(mask, counts, threads=threads),
            fill_value=a.fill_value, hard_mask=a.hardmask)
    return numpy.tile(a, counts)


# ---------------------------------------------------------------- shapes

def output_shape(shape, reps):
    """The shape of a tiling; nothing is allocated.

    >>> import tilecore
    >>> tilecore.output_shape((2, 3), (4, 1, 2))
    (4, 2, 6)
    >>> tilecore.output_shape((10**9, 10**9), 1)
    (1000000000, 1000000000)

    Parameters
    ----------
    shape : int or iterable of int
        The input's extents, 0 or more, at most 64.
    reps : int or iterable of int
        Repeats per axis, as in `tile`.

    Returns
    -------
    tuple of int

    Raises
    ------
    TypeError
        Where an extent or a repeat is not an integer.
    ValueError
        Where one is negative, there are more than 64, or the extents or their product overflow 64
        bits.

    Source: NumPy 2, `numpy.tile`.
    """
    cdef tilecore_plan plan
    cdef Py_ssize_t repeats[MAX_RANK + 1]
    cdef Py_ssize_t sizes[MAX_RANK + 1]
    cdef int ndim, nreps, status, k
    ndim = read_integers(shape, sizes, "extents", "output_shape", None, reps)
    known = tuple([sizes[k] for k in range(ndim)])
    nreps = read_integers(reps, repeats, "repeats", "output_shape", known, reps)
    status = plan_init(&plan, ndim, sizes, nreps, repeats, 1)
    if status != PLAN_OK:
        raise refuse(ValueError, "output_shape", plan_problem(&plan, status), known, reps)
    return output_tuple(&plan)
