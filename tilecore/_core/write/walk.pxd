"""A walk through a region of a tiling, item by item. See walk.pyx."""

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.sizes cimport Sizes
from tilecore._core.request.places cimport Held, Place


cdef enum:
    TURN = 1 << 19      # references between two turns of other threads: a millisecond, 50 where none is cached


cdef struct Step:               # an axis of the walk
    Py_ssize_t count            # items of the output
    Py_ssize_t extent           # of the source, after which it starts again
    Py_ssize_t first            # in the source
    Py_ssize_t src, dst         # bytes to the next item
    Py_ssize_t place, index     # where the walk is, in the output and in the source


cdef struct Walk:
    const Held *source          # the arrays that it reads and writes
    const Held *target
    int n                       # axes, innermost first
    Step step[MAX_RANK + 1]
    const char *src
    char *dst
    bint done


cdef void walk_init(Walk *walk, const Sizes *sizes, const Place *source, const Place *target, const Held *array,
                    const Held *result, const Py_ssize_t *start, const Py_ssize_t *shape) noexcept
cdef Py_ssize_t run_of(const Walk *walk, Py_ssize_t most) noexcept
cdef void advance(Walk *walk, Py_ssize_t n) noexcept
cdef int check_held(const Held *array, const Held *result) except -1
cdef int take_turn() except -1
