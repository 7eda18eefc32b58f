# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The array functions and TilePlan: what is asked for is read, checked and planned; results.pyx does it.

`tile` is a compiled builtin with nothing in between: a plain array and a tuple of ints cost an
allocation and a copy. All that is rarer goes through functions out of line.
"""

import sys

import numpy

from tilecore._core.counts import brief

cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc

from tilecore._core.arguments cimport (
    as_plain_array, as_tuple, check_out, check_size, is_masked, read_integers, read_repeats, read_threads, refuse,
)
from tilecore._core.execute cimport TILECORE_NOGIL_BYTES, Blocks, divide, write_one_block
from tilecore._core.mapped cimport Sharing, choose_sharing, mapped_array
from tilecore._core.memory cimport memory_limit
from tilecore._core.numpy_api cimport (
    PyArray_Check, PyArray_CheckExact, PyArray_EquivTypes, PyDataType_REFCHK, array_upon,
)
from tilecore._core.plan cimport MAX_RANK, PLAN_OK, Nest, Plan, plan_init, plan_nest, plan_problem
from tilecore._core.results cimport (
    Bounds, Source, choose_mode, new_result, part, read_bounds, source_init, strides_of, whole,
)

cnp.import_array()


# ---------------------------------------------------------------- what is asked for

cdef int make_plan(Plan *plan, cnp.ndarray array, reps, str name) except -1:
    """Read `reps` and plan for `array`, which reading them may have given another shape."""
    cdef Py_ssize_t repeats[MAX_RANK + 1]
    cdef int nreps = read_repeats(reps, repeats, name, array)
    cdef int status = plan_init(plan, cnp.PyArray_NDIM(array), <Py_ssize_t *>cnp.PyArray_DIMS(array),
                                nreps, repeats, cnp.PyArray_ITEMSIZE(array))
    if status != PLAN_OK:
        raise refuse(ValueError, name, plan_problem(plan, status), array, reps)
    return 0


cdef cnp.ndarray plain(a, str name, reps):
    """`a` as a plain array, for what can only be done with one."""
    cdef cnp.ndarray array
    if PyArray_CheckExact(a):
        return a
    array = as_plain_array(a, name)
    if array is None:
        raise refuse(TypeError, name, f"the input must be a plain array, got {type(a).__name__}", None, reps)
    return array


# ---------------------------------------------------------------- functions

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
        Write a result of 16 MiB or more by at most this many threads; default: from 64 MiB on, see
        `get_num_threads`.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new, writeable, C-contiguous array that never shares memory with
        `a`. ``shape[k] * reps[k]`` long on axis ``k``; dtype as `a` (new strings of no characters have
        room for one, as everywhere in NumPy).

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
    The memory of a large result is kept when it dies, and used for a later one: see
    `recycled_bytes`. To read a large tiling, or to change little of it, `tile_mapped` is quicker
    by far; `tile_region` makes a part alone.

    Where it differs from `numpy.tile`, always towards safety: a negative repeat is an error also
    on empty input; ``1.0`` is not taken for 1; narrow NumPy integers never wrap
    (``numpy.uint8(100)`` on 3 elements gives 300); reps of rank 2 are an error; the result is
    C-contiguous and fresh whatever the reps; ``(100, 100)`` by ``(200, 0)`` allocates nothing.

    Source: NumPy 2, `numpy.tile`.
    """
    cdef Plan plan
    cdef Source source
    cdef cnp.ndarray array
    cdef int count = 0
    if PyArray_CheckExact(a):
        array = a
    else:
        array = as_plain_array(a, "tile")
        if array is None:
            return tile_other(a, reps, out, threads)
    if threads is not None:
        count = read_threads(threads, "tile")
    make_plan(&plan, array, reps, "tile")
    source_init(&source, array)
    return whole(&plan, &source, array, out, count, "tile", reps)


cdef tile_other(a, reps, out, threads):
    """Subclasses of ndarray, and arrays of other libraries."""
    cdef Plan plan
    cdef Py_ssize_t repeats[MAX_RANK + 1]
    cdef bint is_array = PyArray_Check(a)
    known = a if is_array else None
    if out is not None:
        raise refuse(TypeError, "tile", f"out is for plain arrays, the input is a {type(a).__name__}",
                     known, reps)
    read_threads(threads, "tile")
    counts = as_tuple(repeats, read_repeats(reps, repeats, "tile", known))
    if is_array:
        make_plan(&plan, a, counts, "tile")
        check_size(plan.nbytes, "tile", known, reps)
    if is_masked(a) and type(a) is sys.modules["numpy.ma"].MaskedArray:
        ma = sys.modules["numpy.ma"]
        mask = ma.getmask(a)
        return ma.MaskedArray(
            tile(ma.getdata(a, subok=False), counts, threads=threads),
            mask=mask if mask is ma.nomask else tile(mask, counts, threads=threads),
            fill_value=a.fill_value, hard_mask=a.hardmask)
    return numpy.tile(a, counts)


def tile_region(a, reps, start, stop, out=None, *, threads=None):
    """A part of a tiling, without ever making the rest.

    >>> import numpy, tilecore
    >>> x = numpy.arange(6).reshape(2, 3)                       # shape (2, 3)
    >>> tilecore.tile_region(x, (10**8, 10**9), (5, 2), (7, 8))      # [5:7, 2:8] of 6e17 elements
    array([[5, 3, 4, 5, 3, 4],
           [2, 0, 1, 2, 0, 1]])

    ``tile(a, reps)[start[0]:stop[0], start[1]:stop[1], ...]``, at a cost in time and memory that
    depends on the region alone.

    Parameters
    ----------
    a : array_like
        As in `tile`, but plain arrays only.
    reps : int or iterable of int
        As in `tile`.
    start, stop : tuple of int
        One entry for each axis of the result; ``0 <= start <= stop <= shape``.
    out : numpy.ndarray, optional
        Where to write; of shape ``stop - start``, otherwise as in `tile`.
    threads : int, optional
        As in `tile`.

    Returns
    -------
    numpy.ndarray
        `out` if given, else a new C-contiguous array of shape ``stop - start``, dtype as `a`.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `tile`; a ValueError also for bounds outside the result. The size limit counts the region.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """
    cdef Plan plan
    cdef Source source
    cdef Bounds bounds
    cdef cnp.ndarray array = plain(a, "tile_region", reps)
    cdef int count = read_threads(threads, "tile_region")
    read_bounds(&bounds, start, stop, "tile_region", array, reps)
    make_plan(&plan, array, reps, "tile_region")
    source_init(&source, array)
    return part(&plan, &source, array, &bounds, out, count, "tile_region", reps)


def tile_view(a, reps):
    """A tiling without a copy, where strides can say it.

    >>> import numpy, tilecore
    >>> x = numpy.array([[1], [2]])                  # shape (2, 1)
    >>> y = tilecore.tile_view(x, (3, 1, 4))         # shape (3, 2, 4), no byte copied
    >>> y.shape, y.strides
    ((3, 2, 4), (0, 8, 0))
    >>> tilecore.tile_view(x, (2, 1))
    Traceback (most recent call last):
    ...
    ValueError: tile_view: axis 0 has 2 elements and is repeated 2 times, which strides cannot say; \
an axis repeated more than once must have one element; input shape (2, 1), dtype int64, repeats (2, 1)

    Every element of a repeat is the same byte of memory: later changes to `a` show in all of them.

    Parameters
    ----------
    a : array_like
        As in `tile`, but plain arrays only.
    reps : int or iterable of int
        As in `tile`. Where the result has elements, an axis repeated more than once must have one.

    Returns
    -------
    numpy.ndarray
        A read-only view of `a`, of `tile`'s shape and dtype.

    Raises
    ------
    TypeError, ValueError
        As `tile`; a ValueError also where strides cannot say it. There is no size limit, for
        nothing is allocated.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """
    cdef Plan plan
    cdef cnp.ndarray array = plain(a, "tile_view", reps)
    cdef Py_ssize_t strides[MAX_RANK]
    cdef bint empty = False
    cdef int k, axis
    make_plan(&plan, array, reps, "tile_view")
    for k in range(plan.ndim):
        empty = empty or plan.output[k] == 0
    for k in range(plan.ndim):
        axis = k - (plan.ndim - cnp.PyArray_NDIM(array))
        if plan.repeats[k] > 1 and plan.shape[k] > 1 and not empty:
            raise refuse(ValueError, "tile_view", f"axis {k} has {plan.shape[k]} elements and is repeated "
                         f"{plan.repeats[k]} times, which strides cannot say; an axis repeated more than once "
                         "must have one element", array, reps)
        strides[k] = 0 if axis < 0 or plan.repeats[k] > 1 else cnp.PyArray_STRIDE(array, axis)
    return array_upon(array, plan.ndim, plan.output, strides, array.descr, cnp.PyArray_DATA(array), 0)


def tile_mapped(a, reps):
    """A tiling whose repeats share memory, each page until it is written to.

    >>> import numpy, tilecore
    >>> x = numpy.arange(2**17, dtype="float64")     # shape (131072,): 1 MiB
    >>> y = tilecore.tile_mapped(x, (1000, 1))       # shape (1000, 131072): 1000 MiB of addresses
    >>> y[1, 5] = -1                                 # copies one page of 4 KiB; nothing else changes
    >>> y[0, 5], y[1, 5], y[2, 5], x[5]
    (np.float64(5.0), np.float64(-1.0), np.float64(5.0), np.float64(5.0))

    The block that repeats is written once, to memory that is then mapped again and again. The
    result may be larger than the physical memory. In milliseconds there is an ordinary, writeable
    array; what is paid later:

    - The first look at each page costs a quarter of a microsecond to one, the first write to it
      about two, and 4 KiB. To write all over the result takes longer than with `tile`, and all
      its memory after all.
    - Resident sizes count a page once for each repeat that was looked at.

    Where the system cannot map so (only Linux can, with memory that is not locked), where the
    repeats do not come out at whole pages, where the process' mappings are used up
    (``vm.max_map_count``), or where copying is as quick, the result is `tile`'s.

    Parameters
    ----------
    a, reps
        As in `tile`.

    Returns
    -------
    numpy.ndarray
        As `tile`: new, writeable, C-contiguous. Its memory is not its own (``flags.owndata`` is
        False), so ``result.resize`` refuses.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `tile`. The size limit counts the block that is written, or all of the result where it
        is `tile`'s.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """
    cdef Plan plan
    cdef Source source
    cdef Nest nest
    cdef Sharing sharing
    cdef cnp.ndarray array
    if PyArray_CheckExact(a):
        array = a
    else:
        array = as_plain_array(a, "tile_mapped")
        if array is None:
            return tile_other(a, reps, None, None)
    make_plan(&plan, array, reps, "tile_mapped")
    source_init(&source, array)
    if plan.nbytes and not PyDataType_REFCHK(array.descr):
        plan_nest(&plan, source.ndim, strides_of(&source), &nest)
        if choose_sharing(&sharing, &nest, plan.nbytes) and sharing.file_bytes <= memory_limit():
            result = mapped_array(&sharing, &nest, plan.ndim, plan.output, array.descr, source.data,
                                  plan.nbytes, choose_mode(sharing.file_bytes, 0, False))
            if result is not None:
                return result
    return whole(&plan, &source, array, None, 0, "tile_mapped", reps)


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
    cdef Plan plan
    cdef Py_ssize_t repeats[MAX_RANK + 1]
    cdef Py_ssize_t sizes[MAX_RANK + 1]
    cdef int ndim, nreps, status
    ndim = read_integers(shape, sizes, "extents", "output_shape", None, reps)
    known = as_tuple(sizes, ndim)
    nreps = read_integers(reps, repeats, "repeats", "output_shape", known, reps)
    status = plan_init(&plan, ndim, sizes, nreps, repeats, 1)
    if status != PLAN_OK:
        raise refuse(ValueError, "output_shape", plan_problem(&plan, status), known, reps)
    return as_tuple(plan.output, plan.ndim)


# ---------------------------------------------------------------- TilePlan

@cython.final
cdef class TilePlan:
    """TilePlan(shape, reps, dtype)\n--\n

    A tiling planned once, for loops over many arrays of one shape and dtype.

    >>> import numpy, tilecore
    >>> plan = tilecore.TilePlan((2, 3), (2, 2), "float32")      # (2, 3) -> (4, 6)
    >>> plan.output_shape, plan.nbytes
    ((4, 6), 96)
    >>> plan(numpy.ones((2, 3), "float32")).shape
    (4, 6)
    >>> plan.region(numpy.ones((2, 3), "float32"), (1, 1), (3, 6)).shape
    (2, 5)

    Immutable, comparable, hashable, picklable, and safe from many threads at once. It may describe
    a result larger than memory: its regions need not be.

    Parameters
    ----------
    shape : int or iterable of int
        Of the arrays to tile.
    reps : int or iterable of int
        As in `tile`.
    dtype : dtype_like
        Of the arrays to tile.

    Raises
    ------
    TypeError, ValueError
        As `tile`, for the shape and the reps.

    Source: tilecore; the values are those of NumPy 2, `numpy.tile`.
    """
    cdef Plan plan
    cdef void *memory           # of `block`
    cdef Blocks *block          # ready to write where the result is one block of plain bytes, else NULL
    cdef int ndim               # of the input
    cdef readonly tuple input_shape
    cdef readonly tuple output_shape
    cdef readonly tuple reps    # one for each axis of the result
    cdef readonly cnp.dtype dtype

    def __cinit__(self, shape, reps, dtype):
        cdef Py_ssize_t sizes[MAX_RANK + 1]
        cdef Py_ssize_t repeats[MAX_RANK + 1]
        cdef Nest nest
        cdef int nreps, status
        try:
            self.dtype = numpy.dtype(dtype)
        except (TypeError, ValueError) as reason:
            if type(reason) is not TypeError and type(reason) is not ValueError:
                raise  # the object's own
            raise refuse(TypeError, "TilePlan", f"expected a dtype, got {brief(dtype)}", None, reps) from reason
        self.ndim = read_integers(shape, sizes, "extents", "TilePlan", None, reps)
        self.input_shape = as_tuple(sizes, self.ndim)
        nreps = read_integers(reps, repeats, "repeats", "TilePlan", self.input_shape, reps)
        status = plan_init(&self.plan, self.ndim, sizes, nreps, repeats, self.dtype.itemsize)
        if status != PLAN_OK:
            raise refuse(ValueError, "TilePlan", plan_problem(&self.plan, status), self.input_shape, reps)
        self.output_shape = as_tuple(self.plan.output, self.plan.ndim)
        self.reps = as_tuple(self.plan.repeats, self.plan.ndim)
        if 0 < self.plan.nbytes < TILECORE_NOGIL_BYTES and not PyDataType_REFCHK(self.dtype):
            # The kernels' masks want an alignment of 32, which Python's objects do not have.
            self.memory = PyMem_RawMalloc(sizeof(Blocks) + 64)
            if self.memory == NULL:
                raise refuse(MemoryError, "TilePlan", "no memory for the plan", self.input_shape, reps)
            self.block = <Blocks *>((<size_t>self.memory + 63) & ~<size_t>63)
            plan_nest(&self.plan, self.ndim, NULL, &nest)
            divide(self.block, &nest, False, True)
            if self.block.loops:
                self.block = NULL

    def __dealloc__(self):
        PyMem_RawFree(self.memory)

    @property
    def nbytes(self):
        """Bytes of the whole result."""
        return self.plan.nbytes

    def __call__(self, a, out=None, *, threads=None):
        """tile(a, self.reps, out, threads=threads), for an `a` of the plan's shape and dtype."""
        cdef Source source
        cdef cnp.ndarray array, result
        cdef bint warm
        cdef int count = 0
        if threads is not None:
            count = read_threads(threads, "TilePlan")
        array = self.checked(a, &source)
        if self.block == NULL or not source.contiguous:
            return whole(&self.plan, &source, array, out, count, "TilePlan", self.reps)
        if out is None:
            result = new_result(self.plan.ndim, self.plan.output, self.plan.nbytes, &warm, array, "TilePlan", self.reps)
        else:
            result = check_out(out, self.plan.output, self.plan.ndim, array, "TilePlan", self.reps)
        write_one_block(self.block, cnp.PyArray_BYTES(result), source.data)
        return result if out is None else out

    def region(self, a, start, stop, out=None, *, threads=None):
        """tile_region(a, self.reps, start, stop, out, threads=threads), as in a call."""
        cdef Bounds bounds
        cdef Source source
        cdef cnp.ndarray array
        cdef int count = read_threads(threads, "TilePlan.region")
        read_bounds(&bounds, start, stop, "TilePlan.region", None, self.reps)
        array = self.checked(a, &source)
        return part(&self.plan, &source, array, &bounds, out, count, "TilePlan.region", self.reps)

    cdef cnp.ndarray checked(self, a, Source *source):
        cdef cnp.ndarray array = a if PyArray_CheckExact(a) else plain(a, "TilePlan", self.reps)
        cdef bint fits = cnp.PyArray_NDIM(array) == self.ndim
        cdef int k, padding = self.plan.ndim - self.ndim
        if fits:
            for k in range(self.ndim):
                fits = fits and cnp.PyArray_DIM(array, k) == self.plan.shape[padding + k]
        if not fits:
            raise refuse(ValueError, "TilePlan", f"the plan is for shape {self.input_shape}, got "
                         f"{(<object>array).shape}", array, self.reps)
        if array.descr is not self.dtype and not PyArray_EquivTypes(array.descr, self.dtype):
            raise refuse(TypeError, "TilePlan", f"the plan is for dtype {self.dtype}, got {array.dtype}",
                         array, self.reps)
        source_init(source, array)
        return array

    def __repr__(self):
        return f"TilePlan({self.input_shape}, {self.reps}, {str(self.dtype)!r})"

    def __eq__(self, other):
        if not isinstance(other, TilePlan):
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __hash__(self):
        return hash(self.__reduce__())

    def __reduce__(self):
        return TilePlan, (self.input_shape, self.reps, self.dtype)
