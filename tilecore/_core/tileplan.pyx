# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The public `TilePlan`, a tiling planned once for many arrays of one shape and dtype, and `output_shape`.

A batch is either a *stack*, one array (n, *shape), or a list of arrays that lie anywhere:

    stack    is tiled as one array, by a plan with one more axis in front that is not repeated
    list     a StridedArray is filled for each array, then one call writes all results

Threads take whole arrays if the results are small, and the blocks of one result if it is large.
"""

from math import prod
from types import GenericAlias

import numpy

from tilecore._core.request.errors import NAMES, RequestError, format_error, pass_on, short_repr, type_name

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject

from tilecore._core.numpy_api cimport (
    MAX_RANK, PyArray_Check, PyArray_CheckExact, PyType_Modified, PyTypeObject, array_upon, descr_of,
)
from tilecore._core.plan.plan cimport Plan, has_input_shape, input_shape, plan_region, plan_many, plan_tiling
from tilecore._core.request.arguments cimport check_dtype, read_items, read_out, read_plain, shape_error
from tilecore._core.request.integers cimport (
    Bounds, as_tuple, read_bounds, read_integers, read_repeats, read_threads,
)
from tilecore._core.write.results cimport make_batch, make_result, make_small

cnp.import_array()


cdef object MISSING = object()


@cython.final
cdef class TilePlan:
    """TilePlan(shape, reps, dtype, *, axis=None)\n--\n

    A tiling planned once, for loops over many arrays of one shape and dtype.

    >>> import numpy, tilecore
    >>> plan = tilecore.TilePlan((2, 3), (2, 2), "float32")      # (2, 3) -> (4, 6)
    >>> plan.output_shape, plan.nbytes
    ((4, 6), 96)
    >>> plan.tile(numpy.ones((2, 3), "float32")).shape
    (4, 6)
    >>> plan.region(numpy.ones((2, 3), "float32"), (1, 1), (3, 6)).shape
    (2, 5)
    >>> plan.batch([numpy.ones((2, 3), "float32"), numpy.zeros((2, 3), "float32")]).shape
    (2, 4, 6)

    A plan is immutable, comparable, hashable and picklable, and many threads may use it at once. The result may be
    larger than memory: `region` makes parts of it. A plan keeps the checked sizes. Loops, kernels and the number of
    threads depend on the arrays and on the moment: each call chooses them.

    Parameters
    ----------
    shape : int or sequence of int
        The shape of the arrays to tile.
    reps, axis
        As in `tile`.
    dtype : dtype_like
        The dtype of the arrays to tile.

    Raises
    ------
    TypeError, ValueError
        As `tile`, for the shape and the reps.
    """
    cdef Plan plan
    cdef readonly tuple input_shape, output_shape, reps     # `reps` has one entry for each axis of the result
    cdef readonly cnp.dtype dtype
    cdef object __weakref__

    __class_getitem__ = classmethod(GenericAlias)  # TilePlan[numpy.float32], for annotations

    def __cinit__(self, shape=MISSING, reps=MISSING, dtype=MISSING, *more, axis=None, **unknown):
        if shape is MISSING or reps is MISSING or dtype is MISSING or more or unknown:  # Cython would name __cinit__
            what = "shape" if shape is MISSING else "reps" if reps is MISSING else "dtype" if dtype is MISSING else ""
            raise TypeError("TilePlan: expected the arguments shape, reps and dtype, and at most axis="
                            + (f"; {what} is missing" if what else ""))
        cdef Py_ssize_t dims[MAX_RANK], repeats[MAX_RANK]
        cdef Plan *plan = &self.plan
        cdef int ndim, n
        try:
            self.dtype = read_dtype(dtype)
            ndim = read_integers(shape, 0, dims, "shape", 0)
            self.input_shape = as_tuple(dims, ndim)
            n = read_repeats(reps, axis, repeats, ndim)
            plan_tiling(plan, ndim, dims, n, repeats, self.dtype.itemsize)
            self.output_shape = as_tuple(plan.output_shape, plan.ndim)
            self.reps = as_tuple(plan.repeats, plan.ndim)
        except RequestError as error:
            typed = shape if self.input_shape is None else self.input_shape
            raise format_error(error, "TilePlan", None, NAMES, shape=typed, reps=reps, axis=axis) from error.__cause__

    @property
    def nbytes(self):
        """Bytes of the whole result."""
        if self.dtype.itemsize:
            return self.plan.nbytes
        return prod(self.output_shape) * numpy.empty(0, self.dtype).itemsize  # strings of length 0 become longer

    def tile(self, a, out=None, *, threads=None):
        """Tile an array of the plan's shape and dtype: ``tilecore.tile(a, self.reps, out, threads=threads)``."""
        if (PyArray_CheckExact(a) and out is None and threads is None and descr_of(a) == <PyObject *>self.dtype
                and has_input_shape(a, &self.plan)
                and (result := make_small(&self.plan, a)) is not None):
            return result
        return self.read_and_tile(a, out, threads)

    cdef read_and_tile(self, a, out, threads):
        """`tile` of arguments of any kind."""
        cdef cnp.ndarray array = None
        cdef int thread_limit
        try:
            thread_limit = read_threads(threads)
            array = read_plain(a)
            return make_result(&self.plan, array, self.check_array(array, out), thread_limit)
        except RequestError as error:
            raise format_error(error, "TilePlan.tile", array, NAMES, reps=self.reps) from error.__cause__

    def region(self, a, start, stop, out=None, *, threads=None):
        """Make a part: ``tilecore.tile_region(a, self.reps, start, stop, out, threads=threads)``."""
        cdef Plan part
        cdef Bounds bounds
        cdef cnp.ndarray array = None
        cdef int thread_limit
        try:
            thread_limit = read_threads(threads)
            read_bounds(&bounds, start, stop)
            array = read_plain(a)
            out_array = self.check_array(array, out)
            plan_region(&part, &self.plan, &bounds, False)
            return make_result(&part, array, out_array, thread_limit)
        except RequestError as error:
            raise format_error(error, "TilePlan.region", array, NAMES, reps=self.reps) from error.__cause__

    def batch(self, arrays, out=None, *, threads=None):
        """Tile many arrays in one call, into one array.

        >>> import numpy, tilecore
        >>> plan = tilecore.TilePlan((28, 28, 1), (1, 1, 3), "uint8")       # gray to RGB
        >>> images = [numpy.full((28, 28, 1), k, "uint8") for k in range(64)]
        >>> plan.batch(images).shape
        (64, 28, 28, 3)
        >>> plan.batch(numpy.zeros((5, 28, 28, 1), "uint8")).shape
        (5, 28, 28, 3)

        ``result[i] = plan.tile(arrays[i])``, for any number of arrays. All are checked before anything is written. Most
        of the work is done without the GIL. A data loader can use `batch` in its ``collate_fn``.

        Parameters
        ----------
        arrays : list or tuple of array_like, or array_like
            Arrays of the plan's shape and dtype, with any strides; or one array of shape ``(n, *shape)``. Other
            iterables raise an error, because they may be endless: pass ``list(...)``.
        out : numpy.ndarray, optional
            As in `tile`, of shape ``(n, *output_shape)``.
        threads : int, optional
            As in `tile`, by the size of the whole result.

        Returns
        -------
        numpy.ndarray
            `out` if given, else a new C-contiguous array of shape ``(n, *output_shape)``.

        Raises
        ------
        TypeError, ValueError, MemoryError
            As `tile`, for the whole result. If an array does not fit, the error names its index.
        """
        cdef int thread_limit
        try:
            thread_limit = read_threads(threads)
            if isinstance(arrays, (list, tuple)):
                arrays = list(arrays)
                read_items(arrays, self.dtype, self.plan.input_ndim, input_shape(&self.plan))
                return make_batch(&self.plan, self.dtype, arrays, read_out(out, self.dtype), thread_limit)
            return tile_stack(&self.plan, self.dtype, arrays, out, thread_limit)
        except RequestError as error:
            raise format_error(error, "TilePlan.batch", self.input_shape, {"input": "arrays"}, dtype=self.dtype,
                               reps=self.reps) from error.__cause__

    cdef cnp.ndarray check_array(self, cnp.ndarray array, out):
        """Check that the array has the plan's dtype and shape. Return `out` as read_out reads it, or None."""
        check_dtype(array, self.dtype, "input")
        cdef cnp.ndarray out_array = read_out(out, self.dtype)
        if not has_input_shape(array, &self.plan):
            raise shape_error(array, self.plan.input_ndim, input_shape(&self.plan), "input")
        return out_array

    def __repr__(self):
        text = str(self.dtype)
        if self.dtype.kind == "T":
            text = f"numpy.dtypes.{text}"
        elif text[0] not in "[({":  # a structured type
            text = repr(text)
        return f"TilePlan({self.input_shape}, {self.reps}, {text})"

    def __eq__(self, other):
        if not isinstance(other, TilePlan):
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __hash__(self):
        # The dtype's hash is left out: equal dtypes with NaN for a missing string have different ones.
        return hash((self.input_shape, self.reps, self.dtype.kind, self.plan.itemsize))

    def __reduce__(self):
        return TilePlan, (self.input_shape, self.reps, self.dtype)


cdef cnp.dtype read_dtype(dtype):
    try:
        return numpy.dtype(dtype)
    except (TypeError, ValueError) as reason:
        pass_on(reason)
        raise RequestError(TypeError, f"expected a dtype, got {short_repr(dtype)}") from reason


cdef cnp.ndarray tile_stack(const Plan *plan, cnp.dtype dtype, arrays, out, int threads):
    """The tilings of the arrays in a stack, by a plan for `dtype`."""
    cdef cnp.ndarray array = read_plain(arrays), out_array
    cdef const Py_ssize_t *shape = input_shape(plan)
    cdef Plan stack
    cdef int k, n = plan.input_ndim
    if cnp.PyArray_NDIM(array) == 0 and not PyArray_Check(arrays):
        raise RequestError(TypeError, "must be a list or a tuple of arrays, or one array with one more axis in front, "
                           f"got {type_name(arrays)}", "input")
    check_dtype(array, dtype, "input")
    out_array = read_out(out, dtype)
    cdef bint fits = cnp.PyArray_NDIM(array) == n + 1 and cnp.PyArray_ITEMSIZE(array) == plan.itemsize
    for k in range(n if fits else 0):
        fits &= cnp.PyArray_DIM(array, k + 1) == shape[k]
    if not fits:
        wanted = ", ".join(map(str, as_tuple(shape, n)))
        raise RequestError(ValueError, f"must have shape (n, {wanted}), got {(<object>array).shape}", "input")
    plan_many(&stack, plan, cnp.PyArray_DIM(array, 0))
    return make_result(&stack, pad_stack(&stack, array), out_array, threads)


cdef cnp.ndarray pad_stack(const Plan *stack, cnp.ndarray array):
    """A view of the stack, with axes of length 1 after its first axis, which pad each source to the plan's rank."""
    cdef Py_ssize_t strides[MAX_RANK]
    cdef int k, padding = stack.ndim - cnp.PyArray_NDIM(array)
    if padding == 0:
        return array
    for k in range(stack.ndim):
        strides[k] = cnp.PyArray_STRIDE(array, k - padding if k > padding else 0)
    return array_upon(array, stack.ndim, stack.shape, strides, array.descr, cnp.PyArray_DATA(array), 0)


def output_shape(shape, reps, *, axis=None):
    """Compute the shape of a tiling, a tuple of ints, without allocating anything.

    >>> import tilecore
    >>> tilecore.output_shape((2, 3), (4, 1, 2))
    (4, 2, 6)
    >>> tilecore.output_shape((10**9, 10**9), 1)
    (1000000000, 1000000000)

    Parameters
    ----------
    shape : int or sequence of int
        The input's shape: extents of 0 or more, at most 64.
    reps, axis
        As in `tile`.

    Raises
    ------
    TypeError, ValueError
        As `tile`, for the shape too.
    """
    cdef Plan plan
    cdef Py_ssize_t dims[MAX_RANK], repeats[MAX_RANK]
    cdef int ndim, n
    try:
        ndim = read_integers(shape, 0, dims, "shape", 0)
        shape = as_tuple(dims, ndim)
        n = read_repeats(reps, axis, repeats, ndim)
        plan_tiling(&plan, ndim, dims, n, repeats, 1)
        return as_tuple(plan.output_shape, plan.ndim)
    except RequestError as error:
        raise format_error(error, "output_shape", None, NAMES, shape=shape, reps=reps, axis=axis) from error.__cause__


# Name the class as users do, in `help` and pickles; Cython cannot express this.
cdef PyTypeObject *kind = <PyTypeObject *>TilePlan
kind.tp_name = "tilecore.TilePlan"
(<dict>kind.tp_dict).pop("__new__", None)
(<dict>kind.tp_dict).pop("__pyx_vtable__", None)
PyType_Modified(kind)
