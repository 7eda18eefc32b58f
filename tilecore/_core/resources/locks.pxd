"""Atomic counters and the affinity mask: see kernels/locks.h."""


cdef extern from "kernels/locks.h" nogil:
    ctypedef struct tilecore_affinity:
        pass
    int tilecore_read_affinity(tilecore_affinity *now)
    Py_ssize_t tilecore_atomic_add(Py_ssize_t *counter, Py_ssize_t n)
    Py_ssize_t tilecore_atomic_load(const Py_ssize_t *counter)
    void tilecore_atomic_store(Py_ssize_t *counter, Py_ssize_t n)
