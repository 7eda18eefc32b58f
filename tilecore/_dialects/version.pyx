# cython: binding=False
"""`Version`: each dialect makes one for each version of its specification, and tiles by it."""

cimport cython
cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, NPY_USERDEF, PY_SSIZE_T_MAX
from tilecore._core.arrays cimport tile_plain, tile_or_none
from tilecore._core.request.integers cimport read_fast

from tilecore._core.request.arguments import read_array
from tilecore._core.request.errors import RequestError, format_error, shape_changed
from tilecore._dialects.tensors import EVERY_TYPE, INTEGERS, as_repeats, check_type

cnp.import_array()


@cython.final
@cython.auto_pickle(False)
cdef class Version:
    """A version of a specification: what it demands, and the tiling by it.

    Parameters
    ----------
    name : str
        The beginning of its error messages.
    types, count_types : Types
        The element types of the input, and of an array of repeats.
    ranks : range
        The ranks that the input may have.
    any_length : bool
        Whether there may be fewer or more repeats than axes; as in NumPy, they are for the last axes.
    min_repeat : int or None
        A smaller one is an error. None: `check` decides about negative repeats.
    max_elements : int, optional
        The most elements that the result may have. With this limit, it may not be empty either. `ranks`, a `min_repeat`
        above 0 and `max_elements` only decide which calls take the fast way: `check` must raise their errors.
    names : mapping
        The specification's names for the core's arguments, as `format_error` takes them.
    check : function, optional
        (version, shape, repeats) -> the repeats for the core; raises a RequestError for what the specification
        does not allow. It is not called for plain arrays and repeats that are within all of the above.
    """
    cdef readonly object name, types, count_types, ranks, min_repeat, max_elements, names
    cdef readonly bint any_length
    cdef object check
    cdef unsigned long long type_mask, count_type_mask
    cdef int min_rank, max_rank
    cdef Py_ssize_t lowest_repeat, most_elements

    def __init__(self, name, types=EVERY_TYPE, count_types=INTEGERS, *, ranks=range(MAX_RANK + 1), any_length=False,
                 min_repeat=0, max_elements=None, names=None, check=None):
        self.name, self.types, self.count_types, self.ranks, self.names = name, types, count_types, ranks, names or {}
        self.any_length, self.min_repeat, self.max_elements, self.check = any_length, min_repeat, max_elements, check
        self.type_mask, self.count_type_mask = types.type_mask, count_types.type_mask
        self.min_rank, self.max_rank = ranks.start, ranks.stop - 1
        self.lowest_repeat, self.most_elements = min_repeat or 0, min(max_elements or 0, PY_SSIZE_T_MAX)

    def tile(self, input, repeats, out, threads):
        """The tiling, or the user's error. Most calls end in the first step, which runs no Python code."""
        if out is None and threads is None and (result := self.tile_fast(input, repeats)) is not None:
            return result
        tensor = None
        try:
            tensor = read_array(input)
            return tile_plain(tensor, self.read_counts(tensor, repeats), out, None, threads)
        except RequestError as error:
            raise format_error(error, self.name, tensor, self.names, repeats=repeats) from error.__cause__

    cdef tile_fast(self, input, repeats):
        """The tiling; None if types, ranks, least repeat or most elements forbid it, or reading may run any code."""
        cdef Py_ssize_t counts[MAX_RANK]
        cdef int n
        if not (cnp.PyArray_CheckExact(input) and has_type(input, self.type_mask)
                and self.min_rank <= cnp.PyArray_NDIM(input) <= self.max_rank
                and (type(repeats) is list or type(repeats) is tuple
                     or cnp.PyArray_CheckExact(repeats) and has_type(repeats, self.count_type_mask))):
            return None
        n = read_fast(repeats, self.lowest_repeat, counts)
        if n != cnp.PyArray_NDIM(input) and not self.any_length:
            return None
        return tile_or_none(input, n, counts, self.most_elements)

    def read_counts(self, tensor, repeats):
        """The repeats as a tuple of ints, which the core checks further; a RequestError if they are not legal."""
        cdef int bit
        check_type(tensor, self.types)
        if (bit := bit_of_type(tensor)) >= 32:
            self.type_mask |= <unsigned long long>1 << bit  # so the next call is fast; a lost bit costs time
        shape = tensor.shape
        counts = as_repeats(repeats, self.count_types, None if self.any_length else len(shape))
        if tensor.shape != shape:
            raise shape_changed()
        return counts if self.check is None else self.check(self, shape, counts)


cdef inline int bit_of_type(cnp.ndarray array) noexcept:
    """The bit of a type mask; -1: none. From 32 on: types that packages register, such as ml_dtypes' bfloat16."""
    cdef int number = cnp.PyArray_TYPE(array)
    if 0 <= number < 32:
        return number
    return number - NPY_USERDEF + 32 if NPY_USERDEF <= number < NPY_USERDEF + 32 else -1


cdef inline bint has_type(cnp.ndarray array, unsigned long long type_mask) noexcept:
    cdef int bit = bit_of_type(array)
    return bit >= 0 and type_mask >> bit & 1
