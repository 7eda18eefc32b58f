"""A walk through a region of a tiling, item by item. See walk.pyx."""

from tilecore._core.plan.nest cimport Step, Window, advance
from tilecore._core.plan.sizes cimport Sizes
from tilecore._core.request.places cimport Held, Place


cdef enum:
    # Between two turns of other threads: they take a millisecond, 50 where none is cached.
    TURN_REFERENCES = 1 << 19


cdef struct Part:               # of a tiling, all of it or a region, and the arrays that it is read from and written to
    const Sizes *sizes
    const Py_ssize_t *start     # of the region, any integers; NULL for all of the tiling
    const Py_ssize_t *shape     # of it, without a 0
    const Held *array
    const Held *result
    const Place *source         # of the items in the memory of both, whatever shape other code gives these meanwhile
    const Place *target


cdef struct Walk:
    const Held *source          # the arrays that it reads and writes
    const Held *target
    Window window
    const char *src
    char *dst
    bint done


cdef void walk_init(Walk *walk, const Part *part) noexcept


cdef inline Py_ssize_t run_of(const Walk *walk, Py_ssize_t most) noexcept:
    """How many items, `most` or less, follow each other on the innermost axis."""
    cdef const Step *step = &walk.window.step[0]
    return min(most, step.count - step.place, step.extent - step.index)


cdef inline void go_past(Walk *walk, Py_ssize_t n) noexcept:
    walk.done = not advance(walk.window.step, walk.window.n, n, &walk.dst, &walk.src)


cdef int check_held(const Held *array, const Held *result) except -1
cdef int take_turn() except -1
