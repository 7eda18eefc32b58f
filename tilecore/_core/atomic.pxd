"""Atomic counters: see runtime/atomic.h."""


cdef extern from "runtime/atomic.h" nogil:
    Py_ssize_t tilecore_atomic_add(Py_ssize_t *counter, Py_ssize_t n)
    Py_ssize_t tilecore_atomic_load(const Py_ssize_t *counter)
    void tilecore_atomic_store(Py_ssize_t *counter, Py_ssize_t n)
