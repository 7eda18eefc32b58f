# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The public functions of arrays, and what the dialects call. They read, check and plan; results.pyx executes the plan.

`tile` is a compiled builtin: for a plain array and a tuple of ints it only allocates and copies. `read_and_tile` serves
all other arguments, by `tile_plain` or, for subclasses and other libraries' arrays, by `tile_not_plain`. Each public
function makes the error from the RequestError that it catches.
"""

from functools import partial

import numpy

from tilecore._core.request.callers_code import run
from tilecore._core.numpy_own import numpy_tile
from tilecore._core.request.errors import NAMES, RequestError, format_error, short_repr, type_name
from tilecore._core.request.masked import is_masked, is_plain_masked, tile_masked

cimport cython
cimport numpy as cnp

from tilecore._core.numpy_api cimport (
    MAX_RANK, NPY_VSTRING, PyArray_Check, PyArray_CheckExact, PyDataType_REFCHK, array_upon,
)
from tilecore._core.plan.plan cimport Plan, plan_region, plan_tiling
from tilecore._core.request.arguments cimport check_rank_unchanged, read_out, read_plain, read_plain_or_none
from tilecore._core.request.integers cimport (
    Bounds, as_tuple, read_bounds, read_fast, read_repeats, read_threads,
)
from tilecore._core.resources.memory cimport check_size
from tilecore._core.write.mapped cimport map_repeats
from tilecore._core.write.results cimport make_result

cnp.import_array()

cdef object MISSING = object()


cdef error_of_call(error, str name, a, cnp.ndarray array, reps, axis):
    """The error that the function `name` raises; `array` is `a` as an array, or None if it was not read."""
    argument = getattr(error, "argument", None)  # a MemoryError has none: see format_error
    if argument == "repeats" and PyArray_Check(reps) and cnp.PyArray_NDIM(reps) > 1 and type(a) in (int, tuple):
        error.what += "; are a and reps swapped?"
    return format_error(error, name, a if PyArray_Check(a) else array, NAMES, reps=reps, axis=axis)


@cython.embedsignature(False)
def tile(a=MISSING, reps=MISSING, out=None, *, axis=None, threads=None):
    """tile(a, reps, out=None, *, axis=None, threads=None)\n--\n

    Repeat a whole array along its axes, as `numpy.tile` does.

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
    >>> tilecore.tile(x, 3, axis=0).shape        # that axis alone
    (6, 3)

    ``out[i] = a[i mod a.shape]`` on every axis, bit for bit.

    Parameters
    ----------
    a : array_like
        Any shape, dtype and strides. A `numpy.ma.MaskedArray` is tiled with its mask, a `numpy.memmap` as an ndarray.
        Other subclasses, and other libraries' arrays with ``__array_function__``, give the result of `numpy.tile`.
    reps : int or sequence of int
        Repeats per axis, 0 or more; at most 64 of them. Any iterable except text and sets.
    out : numpy.ndarray, optional
        A writeable array of the result's shape and dtype, and of any strides. It must share no memory with `a`, and
        have no overlapping elements. Errors are raised before anything is written, except those of signal handlers and,
        for Python objects, those of their own code or of a lack of memory.
    axis : int or tuple of int, optional
        The axes to repeat, with one repeat for each. All others stay as they are. Negative axes count from the end.
        By default, the last repeat is for the last axis, and so on.
    threads : int, optional
        The maximum number of threads. One thread writes a result below 1 MiB. `get_num_threads` explains the default.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new, writeable, C-contiguous array that shares no memory with `a`. Axis ``k`` has
        ``shape[k] * reps[k]`` elements. The dtype is that of `a`; as in NumPy, strings of length 0 get length 1.

    Raises
    ------
    TypeError
        `reps`, `axis` or `threads` that are not integers (1.0 and True are not), an input that is not an array,
        an `out` that is not an array or has another dtype.
    ValueError
        A negative repeat, more than 64 repeats, sizes that overflow 64 bits, `threads` below 1; an `out` of another
        shape, read-only, or overlapping; an axis given twice, or out of bounds (`numpy.exceptions.AxisError`).
    MemoryError
        A result larger than `get_max_bytes()`, for which nothing is allocated; or no memory.

    Notes
    -----
    When a result of 128 KiB or more is garbage-collected, later results reuse its memory: see `recycled_bytes`. To
    read a large result, or to change little of it, `tile_mapped` is much faster. `tile_region` makes only a part.
    The documentation's page "Migrating from numpy.tile" lists the differences.

    Source: NumPy 2, `numpy.tile`; `axis`: NumPy's issue 8879.
    """
    cdef Py_ssize_t repeats[MAX_RANK]
    if (PyArray_CheckExact(a) and out is None and axis is None and threads is None
            and (result := tile_or_none(a, read_fast(reps, 0, repeats), repeats, 0)) is not None):
        return result
    if a is MISSING or reps is MISSING:
        raise TypeError(f"tile: {'a' if a is MISSING else 'reps'} is missing")
    return read_and_tile(a, reps, out, axis, threads)


cdef cnp.ndarray plan_arguments(Plan *plan, cnp.ndarray array, reps, axis, out):
    """Fill `plan` for `array`, after all reading. Return `out` as read_out reads it, or None."""
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef int n = read_repeats(reps, axis, repeats, cnp.PyArray_NDIM(array))
    cdef cnp.ndarray out_array = read_out(out, array.descr)
    check_rank_unchanged(array, axis, n)
    plan_tiling(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array), n, repeats,
                cnp.PyArray_ITEMSIZE(array))
    return out_array


cpdef tile_plain(cnp.ndarray array, reps, out=None, axis=None, threads=None):
    """`tile` of a plain array. Raises RequestErrors, from which the caller makes the error."""
    cdef Plan plan
    cdef int thread_limit = read_threads(threads)
    cdef cnp.ndarray out_array = plan_arguments(&plan, array, reps, axis, out)
    return make_result(&plan, array, out_array, thread_limit)


cdef read_and_tile(a, reps, out, axis, threads):
    """`tile` of arguments of any kind."""
    cdef cnp.ndarray array = None
    try:
        array = read_plain_or_none(a)
        if type(reps) is int and type(out) is int:
            raise RequestError(TypeError, "must be a NumPy array, got int; repeats of several axes are one argument: "
                               f"{short_repr((reps, out))}", "out")
        if array is None:
            return tile_not_plain(a, reps, out, axis, threads)
        return tile_plain(array, reps, out, axis, threads)
    except RequestError as error:
        raise error_of_call(error, "tile", a, array, reps, axis) from error.__cause__


cdef tile_not_plain(a, reps, out, axis, threads):
    """Tile a subclass of ndarray, or an array of another library."""
    cdef Plan plan
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef bint is_array = PyArray_Check(a), masked, as_ndarray
    cdef cnp.ndarray array
    cdef int n, thread_limit
    if out is not None:
        raise RequestError(TypeError, f"is not supported for an input of type {type_name(a)}", "out")
    thread_limit = read_threads(threads)
    ndim = cnp.PyArray_NDIM(a) if is_array else len(numpy.shape(a)) if axis is not None else 0
    n = read_repeats(reps, axis, repeats, ndim)
    if not is_array:
        return run(numpy_tile, a, as_tuple(repeats, n))
    array = a
    as_ndarray = tiled_as_ndarray(type(a), n > cnp.PyArray_NDIM(array))
    masked = not as_ndarray and is_masked(a)
    check_rank_unchanged(array, axis, n)
    counts = as_tuple(repeats, n)
    plan_arguments(&plan, array, counts, None, None)
    check_size(plan.nbytes)
    if as_ndarray and plan.nbytes and (not PyDataType_REFCHK(array.descr) or cnp.PyArray_TYPE(array) == NPY_VSTRING):
        # As everywhere in NumPy, `__array_finalize__` is called with `a`.
        return WRAP(a, make_result(&plan, array, None, thread_limit), None, False)
    return tile_masked(a, counts, partial(tile, reps=counts, threads=threads)) if masked else run(numpy_tile, a, counts)


cdef tuple USED = ("__array_function__", "ndim", "shape", "size", "reshape", "repeat")  # by `numpy.tile`
cdef object FINALIZE = "__array_finalize__", WRAP = numpy.ndarray.__array_wrap__
# NumPy's own do not depend on the shapes that an array had on its way to the result.
cdef tuple FINALIZERS = tuple([getattr(kind, FINALIZE) for kind in (numpy.ndarray, numpy.matrix, numpy.recarray)])


cdef bint tiled_as_ndarray(kind, bint more_axes) except -1:
    """Whether `numpy.tile` treats an array of this class as an ndarray. A matrix has two axes, never more."""
    for name in USED:
        if getattr(kind, name) is not getattr(numpy.ndarray, name):
            return False
    return getattr(kind, FINALIZE) in FINALIZERS and not (more_axes and issubclass(kind, numpy.matrix))


@cython.embedsignature(False)
def tile_region(a, reps, start=MISSING, stop=MISSING, out=None, *, axis=None, threads=None):
    """tile_region(a, reps, start, stop, out=None, *, axis=None, threads=None)\n--\n

    Make a part of a tiling, without making the rest.

    >>> import numpy, tilecore
    >>> x = numpy.arange(6).reshape(2, 3)                       # shape (2, 3)
    >>> tilecore.tile_region(x, (10**8, 10**9), (5, 2), (7, 8))      # [5:7, 2:8] of 6e17 elements
    array([[5, 3, 4, 5, 3, 4],
           [2, 0, 1, 2, 0, 1]])
    >>> tilecore.tile_region(x, None, (-1, -2), (3, 4))         # x repeats without end; shape (4, 6)
    array([[4, 5, 3, 4, 5, 3],
           [1, 2, 0, 1, 2, 0],
           [4, 5, 3, 4, 5, 3],
           [1, 2, 0, 1, 2, 0]])

    The result is ``tile(a, reps)[start[0]:stop[0], start[1]:stop[1], ...]``. Time and memory depend only on the region.
    With ``reps=None``, `a` repeats without end: use this for periodic windows, textures, a canvas of a fixed size, and
    padding that wraps around (``start = (-before, ...)``, ``stop = (a.shape[0] + after, ...)``).

    Parameters
    ----------
    a : array_like
        As in `tile`, but a plain array or a `numpy.ma.MaskedArray`. A mask is tiled too.
    reps : int or sequence of int, or None
        As in `tile`. None repeats `a` without end, in both directions: element ``i`` is ``a[i mod a.shape]``.
    start, stop : tuple of int
        One entry for each axis of the result: ``0 <= start <= stop <= shape``. With ``reps=None`` both may be negative.
    out : numpy.ndarray, optional
        As in `tile`, of shape ``stop - start``.
    axis, threads
        As in `tile`. With ``reps=None``, `axis` must be None too.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new C-contiguous array of shape ``stop - start``, dtype as `a`.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `tile`; the size limit applies to the region. ValueError also for bounds outside the result, and with
        ``reps=None`` if an axis of `a` is empty but the region along it is not.

    Source: NumPy 2; the values are those of `numpy.tile` and ``numpy.pad(mode="wrap")``.
    """
    cdef cnp.ndarray array = None
    if start is MISSING or stop is MISSING:
        raise TypeError(f"tile_region: {'start' if start is MISSING else 'stop'} is missing")
    try:
        if PyArray_CheckExact(a) or not is_plain_masked(a):
            array = read_plain(a)
        return region_of(a, array, reps, start, stop, out, axis, threads)
    except RequestError as error:
        raise error_of_call(error, "tile_region", a, array, reps, axis) from error.__cause__


cdef region_of(a, cnp.ndarray array, reps, start, stop, out, axis, threads):
    """The region of `array`, as it was read from `a`, or of a masked `a` if that is None.

    A function of its own: while `a` is read, no plan lies on the stack, see serve_numpy_tile.
    """
    cdef Plan plan, region
    cdef Bounds bounds
    cdef cnp.ndarray out_array
    cdef int thread_limit = read_threads(threads)
    read_bounds(&bounds, start, stop)
    if array is None:
        return masked_region(a, reps, &bounds, out, axis, threads)
    if reps is None and axis is not None:
        raise RequestError(ValueError, "must be None if reps is None: the input repeats along every axis", "axis")
    out_array = plan_arguments(&plan, array, () if reps is None else reps, axis, out)  # one repeat, if periodic
    plan_region(&region, &plan, &bounds, reps is None)
    return make_result(&region, array, out_array, thread_limit)


cdef masked_region(a, reps, const Bounds *bounds, out, axis, threads):
    """The region of a masked array, of data and mask. Repeats may be an iterator, so they are read once for both."""
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef int n
    if out is not None:
        raise RequestError(TypeError, f"is not supported for an input of type {type_name(a)}", "out")
    if reps is not None:
        n = read_repeats(reps, axis, repeats, cnp.PyArray_NDIM(a))
        check_rank_unchanged(a, axis, n)
        reps, axis = as_tuple(repeats, n), None
    return tile_masked(a, reps, partial(tile_region, reps=reps, start=as_tuple(bounds.start, bounds.start_ndim),
                                        stop=as_tuple(bounds.stop, bounds.stop_ndim), axis=axis, threads=threads))


def tile_view(a, reps, *, axis=None):
    """Make a read-only view of a tiling, if strides can express it.

    >>> import numpy, tilecore
    >>> x = numpy.array([[1], [2]])                  # shape (2, 1)
    >>> y = tilecore.tile_view(x, (3, 1, 4))         # shape (3, 2, 4), no byte copied
    >>> y.shape, y.strides
    ((3, 2, 4), (0, 8, 0))
    >>> tilecore.tile_view(x, (2, 1))                # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: tile_view: axis 0 has 2 elements and is repeated 2 times, which strides cannot express; ...

    All repeats of an element share its memory, so later changes to `a` show in each repeat.

    Parameters
    ----------
    a : array_like
        As in `tile`, but plain arrays only.
    reps, axis
        As in `tile`. An axis that is repeated more than once must have length 1, unless the result is empty.

    Returns
    -------
    numpy.ndarray
        A read-only view of `a`, of `tile`'s shape and dtype.

    Raises
    ------
    TypeError, ValueError
        As `tile`. ValueError also if strides cannot express the result. Nothing is allocated, so no size is too large.
    """
    cdef Plan plan
    cdef cnp.ndarray array = None
    cdef Py_ssize_t strides[MAX_RANK]
    cdef int k, i
    try:
        array = read_plain(a)
        plan_arguments(&plan, array, reps, axis, None)
        for k in range(plan.ndim):
            i = k - (plan.ndim - plan.input_ndim)
            if plan.repeats[k] > 1 and plan.shape[k] > 1 and plan.copies:  # copies is 0 if the result is empty
                raise RequestError(ValueError, f"axis {k} has {plan.shape[k]} elements and is repeated "
                                   f"{plan.repeats[k]} times, which strides cannot express; an axis repeated more "
                                   "than once must have one element")
            strides[k] = 0 if i < 0 or plan.repeats[k] > 1 else cnp.PyArray_STRIDE(array, i)
        return array_upon(array, plan.ndim, plan.output_shape, strides, array.descr, cnp.PyArray_DATA(array), 0)
    except RequestError as error:
        raise error_of_call(error, "tile_view", a, array, reps, axis) from error.__cause__


def tile_mapped(a, reps, *, axis=None):
    """Make a copy-on-write tiling: repeats share memory until they are written to.

    >>> import numpy, tilecore
    >>> x = numpy.arange(2**17, dtype="float64")     # shape (131072,): 1 MiB
    >>> y = tilecore.tile_mapped(x, (1000, 1))       # shape (1000, 131072): 1000 MiB of address space
    >>> y[1, 5] = -1                                 # copies one page of 4 KiB; nothing else changes
    >>> y[0, 5], y[1, 5], y[2, 5], x[5]
    (np.float64(5.0), np.float64(-1.0), np.float64(5.0), np.float64(5.0))

    A block of as many repeats as make whole pages, a multiple of ``math.lcm(bytes of one repeat, 4096)``, is written
    once, and mapped for every such block of the result. The result is an ordinary, writeable array, and may be larger
    than physical memory. Writing to all of it takes longer than `tile`, and as much memory.

    Only repeats along the first axis share pages, on Linux, and only if the block is at most a third of the result.
    Else the result is an ordinary array, as from `tile`. The documentation's page "Memory" has the other conditions.

    Parameters
    ----------
    a, reps, axis
        As in `tile`.

    Returns
    -------
    numpy.ndarray
        As `tile`. If it shares pages, ``flags.owndata`` is False, and ``result.resize`` raises an error.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `tile`. The size limit applies to the block that is written, or to the whole of an ordinary array.
    """
    cdef Plan plan
    cdef cnp.ndarray array = None, result = None
    try:
        array = read_plain_or_none(a)
        if array is None:
            return tile_not_plain(a, reps, None, axis, None)
        plan_arguments(&plan, array, reps, axis, None)
        if plan.nbytes and not PyDataType_REFCHK(array.descr):
            result = map_repeats(&plan, array)
        if result is None:
            check_size(plan.nbytes, "the result, whose repeats cannot share pages,")
        return make_result(&plan, array, None, 0) if result is None else result
    except RequestError as error:
        raise error_of_call(error, "tile_mapped", a, array, reps, axis) from error.__cause__
