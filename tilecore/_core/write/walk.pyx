"""A walk through a region of a tiling, item by item, for items that hold references.

It takes a run of the innermost axis at a time. Between two runs other code may get a turn: the walk keeps addresses
and counts alone, and `check_held` checks that the memory of both arrays is still there, and holds what it held.
"""

from tilecore._core.request.refusals import Refusal

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals

from tilecore._core.plan.nest cimport Step, Window, window_init
from tilecore._core.request.places cimport Held, place_strides, still_there

cnp.import_array()


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


# ---------------------------------------------------------------- other code

MOVED = "was given other memory or another dtype in the midst of the call"


cdef int check_held(const Held *array, const Held *result) except -1:
    """Refuse arrays that other code has changed since they were noted."""
    if not (still_there(array) and still_there(result)):
        raise Refusal(ValueError, MOVED, "out" if still_there(array) else "input")
    return 0


cdef int take_turn() except -1:
    """Let other threads run, and look for signals."""
    with nogil:
        pass
    PyErr_CheckSignals()
    return 0
