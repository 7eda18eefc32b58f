# cython: binding=False
"""Tilings of plain arrays, for `tile` and the dialects. Raises RequestErrors, from which the caller makes the error."""

cimport cython
cimport numpy as cnp

from tilecore._core.numpy_api cimport MAX_RANK, PyArray_CheckExact
from tilecore._core.plan.plan cimport Plan, plan_array, plan_check
from tilecore._core.request.arguments cimport check_rank, read_out
from tilecore._core.request.integers cimport read_repeats, read_threads
from tilecore._core.write.results cimport make_result

from tilecore._core.request.errors import RequestError

cnp.import_array()


cdef cnp.ndarray read_request(Plan *plan, cnp.ndarray array, reps, axis, out):
    """Make the plan for `array`. Return `out` as read_out reads it, or None. The plan is made last."""
    cdef Py_ssize_t repeats[MAX_RANK]
    cdef cnp.ndarray target = None
    cdef int n = read_repeats(reps, axis, repeats, cnp.PyArray_NDIM(array))
    if out is not None:
        target = read_out(out, array)
    check_rank(array, axis, n)
    plan_check(plan, plan_array(plan, array, n, repeats))
    return target


cpdef tile_array(cnp.ndarray array, reps, out=None, threads=None, axis=None):
    """`tile` of a plain array."""
    cdef Plan plan
    cdef int max_threads = read_threads(threads)
    cdef cnp.ndarray target = read_request(&plan, array, reps, axis, out)
    target = make_result(&plan, array.descr, array, NULL, target, max_threads)
    return target if out is None else out


@cython.final
@cython.auto_pickle(False)
cdef class Limits:
    """What a dialect demands, as far as numbers express it.

    Parameters
    ----------
    types, count_types : int
        The types of the input, and of an array of repeats: a bit for each of NumPy's type numbers.
    ranks : range
    any_length : bool
        Whether there may be fewer or more repeats than axes; they are for the last axes, as in NumPy.
    min_repeat : int
    max_elements : int or None
        Of the result. With it, an empty result is left to the dialect too.
    """
    cdef unsigned long types, count_types
    cdef int min_rank, max_rank
    cdef bint any_length
    cdef Py_ssize_t min_repeat
    cdef long long max_elements

    def __init__(self, types, count_types, *, ranks=range(MAX_RANK + 1), any_length=False, min_repeat=0,
                 max_elements=None):
        self.types, self.count_types, self.min_rank, self.max_rank = types, count_types, ranks.start, ranks.stop - 1
        self.any_length, self.min_repeat, self.max_elements = any_length, min_repeat, max_elements or 0


cdef inline bint has_type(cnp.ndarray array, unsigned long types) noexcept:
    cdef int number = cnp.PyArray_TYPE(array)
    return 0 <= number < 32 and types >> number & 1


def tile_within(Limits limits not None, input, repeats):
    """The tiling, if the request keeps the limits and is read without the caller's code, as most are.

    Else None: then the dialect reads the request, and says what is wrong. So most calls need none of its Python code.
    """
    cdef Plan plan
    cdef cnp.ndarray array
    if not PyArray_CheckExact(input):
        return None
    array = input
    if type(repeats) is list:
        repeats = tuple(repeats)  # another thread may change a list meanwhile
    if type(repeats) is tuple:
        n = len(repeats)
    elif PyArray_CheckExact(repeats) and cnp.PyArray_NDIM(repeats) == 1 and has_type(repeats, limits.count_types):
        n = cnp.PyArray_DIM(repeats, 0)
    else:
        return None
    if not (has_type(array, limits.types) and limits.min_rank <= cnp.PyArray_NDIM(array) <= limits.max_rank
            and (limits.any_length or n == cnp.PyArray_NDIM(array))
            and plan_at_once(&plan, array, repeats, limits.min_repeat)):
        return None
    if limits.max_elements and not (plan.nbytes and plan.nbytes // plan.itemsize <= limits.max_elements):
        return None
    try:
        return make_result(&plan, array.descr, array, NULL, None, 0)
    except RequestError:
        return None
