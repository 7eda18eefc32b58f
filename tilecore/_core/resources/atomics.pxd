"""Atomic counters: see kernels/threads.h."""


cdef extern from "kernels/threads.h" nogil:
    Py_ssize_t tilecore_atomic_add(Py_ssize_t *counter, Py_ssize_t n)
    Py_ssize_t tilecore_atomic_load(const Py_ssize_t *counter)
    void tilecore_atomic_store(Py_ssize_t *counter, Py_ssize_t n)
