# cython: binding=False
"""What a fork() changes: how many processors this process may use, whether it is a child, its main thread."""

import os
import sys
import threading

from tilecore._core.resources.machine import cpu_quota

from tilecore._core.atomic cimport tilecore_atomic_load, tilecore_atomic_store


cdef extern from "runtime/system.h" nogil:
    ctypedef struct tilecore_affinity:
        pass
    int tilecore_read_affinity(tilecore_affinity *now)


cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil


forks = 0
# The first call from Python in a process finds `cpu_share` and `is_child`: calls from C cannot. 0 and -1 mean unknown.
cdef Py_ssize_t cpu_share = 0, is_child = -1
cdef Py_ssize_t quota = cpu_quota()   # read here, so that calls open no files; 0 after a fork
# Python delivers signals to the main thread alone. Looking up this thread at each call would run Python code.
cdef unsigned long main_thread = threading.main_thread().ident
cdef Py_ssize_t all_cpus = os.cpu_count() or 1


cdef Py_ssize_t usable_cpus() noexcept nogil:
    """How many processors the calling thread may use now, at most `cpu_share`; 1 until that is known."""
    cdef tilecore_affinity now
    cdef Py_ssize_t share = tilecore_atomic_load(&cpu_share)
    return min(tilecore_read_affinity(&now) or all_cpus, share) if share > 1 else 1


cdef int find_cpu_share() except -1:
    """Set `cpu_share`: the control group's quota, or 1 in a child of multiprocessing, as its siblings use the rest."""
    global quota
    if tilecore_atomic_load(&cpu_share) == 0:
        quota = quota or cpu_quota()
        tilecore_atomic_store(&cpu_share, 1 if in_multiprocessing_child() else quota)
    return 0


cpdef bint in_multiprocessing_child() except -1:
    """Whether this process is one of several that share the machine's processors and memory.

    `multiprocess` (pathos) and `billiard` (Celery) are forks of multiprocessing. `sys.modules` is read only once:
    without the GIL, another thread may hold the dict's lock during a fork(), and then it stays locked in the child.
    No function of multiprocessing is called: if another thread is still importing it, no child has been started.
    """
    cdef Py_ssize_t child = tilecore_atomic_load(&is_child)
    if child < 0:
        child = False
        for name in ("multiprocessing.process", "multiprocess.process", "billiard.process"):
            current = getattr(sys.modules.get(name), "_current_process", None)
            # A spawned child imports the main module while it is still the main process of its own.
            child |= bool(getattr(current, "_inheriting", False) or getattr(current, "_parent_pid", None))
        tilecore_atomic_store(&is_child, child)
    return child


cdef bint in_main_thread() noexcept nogil:
    return PyThread_get_thread_ident() == main_thread


def forget_process():
    """In a child, before multiprocessing marks it, forget what was found. The forking thread is now the main thread."""
    global forks, main_thread, quota
    forks += 1
    quota = 0
    main_thread = PyThread_get_thread_ident()
    tilecore_atomic_store(&is_child, -1)
    tilecore_atomic_store(&cpu_share, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_process)
