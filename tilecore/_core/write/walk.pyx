# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A walk through a region of a tiling in the order of C, for items that hold references.

It takes a run of the innermost axis at a time. Between two runs other code may get a turn: the walk keeps addresses
and counts alone, and `check_held` checks that the memory of both arrays is still there, and holds what it held.
"""

from tilecore._core.request.refusals import Refusal

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.pystate cimport PyThreadState

from tilecore._core.plan.sizes cimport Sizes
from tilecore._core.request.places cimport Held, Place, holds

cnp.import_array()


cdef extern from "Python.h":
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)


cdef void walk_init(Walk *walk, const Sizes *sizes, const Place *source, const Place *target, const Held *array,
                    const Held *result, const Py_ssize_t *start, const Py_ssize_t *shape) noexcept:
    """A walk through the region of `shape` that begins at `start`, or NULL for 0; it is not empty.

    An axis merges as a loop does (nest.pyx): if it only continues the inner one.
    """
    cdef Py_ssize_t src_pitch = sizes.itemsize, dst_pitch = sizes.itemsize, src_step, dst_step, count, extent, first
    cdef Step *inner
    cdef int k
    walk.n = 0
    walk.source = array
    walk.target = result
    walk.src = source.data
    walk.dst = target.data
    walk.done = False
    for k in range(sizes.ndim - 1, -1, -1):
        extent = sizes.shape[k]
        count = shape[k]
        first = start[k] % extent if start != NULL else 0
        if first < 0:
            first += extent
        src_step = 0
        if extent != 1:  # a padded axis has extent 1 and no stride
            src_step = src_pitch if source.contiguous else source.strides[k - (sizes.ndim - source.ndim)]
        dst_step = dst_pitch if target.contiguous else target.strides[k]
        src_pitch *= extent
        dst_pitch *= count
        walk.src += first * src_step
        if count == 1:
            continue
        if extent == 1 or count <= extent - first:  # it never starts again
            first, extent = 0, count
        if walk.n:
            inner = &walk.step[walk.n - 1]
            if (inner.first == 0 and inner.extent == inner.count and src_step == inner.src * inner.count
                    and dst_step == inner.dst * inner.count):
                inner.first = first * inner.count
                inner.index = inner.first
                inner.extent = extent * inner.count
                inner.count *= count
                continue
        walk.step[walk.n] = Step(count, extent, first, src_step, dst_step, 0, first)
        walk.n += 1
    if walk.n == 0:
        walk.step[0] = Step(1, 1, 0, 0, 0, 0, 0)
        walk.n = 1


cdef Py_ssize_t run_of(const Walk *walk, Py_ssize_t most) noexcept:
    """How many items, `most` or less, follow each other on the innermost axis."""
    cdef const Step *step = &walk.step[0]
    return min(most, step.count - step.place, step.extent - step.index)


cdef void advance(Walk *walk, Py_ssize_t n) noexcept:
    """Go past a run."""
    cdef Step *step
    cdef int k
    for k in range(walk.n):
        step = &walk.step[k]
        walk.src += n * step.src
        walk.dst += n * step.dst
        step.place += n
        step.index += n
        if step.index == step.extent:
            walk.src -= step.extent * step.src
            step.index = 0
        if step.place < step.count:
            return
        walk.src += (step.first - step.index) * step.src
        walk.dst -= step.count * step.dst
        step.index = step.first
        step.place = 0
        n = 1
    walk.done = True


# ---------------------------------------------------------------- other code

MOVED = "was given other memory or another dtype in the midst of the call"


cdef int check_held(const Held *array, const Held *result) except -1:
    """Refuse arrays that other code has changed since they were noted."""
    if not (holds(array) and holds(result)):
        raise Refusal(ValueError, MOVED, "out" if holds(array) else "input")
    return 0


cdef int take_turn() except -1:
    """Let other threads run, and look for signals."""
    PyEval_RestoreThread(PyEval_SaveThread())
    PyErr_CheckSignals()
    return 0
