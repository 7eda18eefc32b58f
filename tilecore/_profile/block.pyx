# cython: binding=False
"""The block of a profile. As replace_numpy_tile, it is compiled, so that no signal handler raises halfway."""

import sys

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from tilecore._core.numpy_own cimport install, uninstall
from tilecore._core.resources cimport memory


cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject *const *arguments, size_t n, PyObject *names)


cdef object measuring = None  # the function that measures; never freed, because another thread may be about to call it


cdef object measure(object own, PyObject *const *arguments, size_t n, PyObject *names):
    return PyObject_Vectorcall(measuring, arguments, n, names)


@cython.final
@cython.auto_pickle(False)
cdef class ProfileBlock:
    """From `__enter__` to `leave`, `profile` is in the list `active`, and `function` measures."""

    cdef object profile, function, token  # `token` is None until `__enter__`
    cdef list active

    def __init__(self, profile, list active, function):
        self.profile, self.active, self.function = profile, active, function

    def __enter__(self):
        global measuring
        if self.token is not None:
            raise RuntimeError("profile: already used; create a new one")
        table = self.profile.start()
        if measuring is not self.function:
            Py_INCREF(self.function)
            measuring = self.function
        self.token = install(measure)
        self.active.append(self.profile)
        memory.leave_heap_alone = True
        return table

    def leave(self):
        """End the block. Return whether the profile was active: in a forked child it is not."""
        uninstall(self.token)
        active = self.profile in self.active
        if active:
            self.active.remove(self.profile)
        memory.leave_heap_alone = len(self.active) > 0
        return active

    def __exit__(self, *exception):
        if self.leave():
            self.profile.report(sys.stderr)

    def __del__(self):
        self.leave()
