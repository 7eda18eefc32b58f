# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The memory and the processors that this process may use: the machine's, or fewer by its control group."""

import os
import re
import sys
import threading

from tilecore._core.request.short_repr import short_repr
from tilecore._core.request.integers import read_count

from tilecore._core.resources.locks cimport (
    tilecore_affinity, tilecore_atomic_load, tilecore_atomic_store, tilecore_read_affinity,
)


cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil


# ---------------------------------------------------------------- bytes

cdef object BYTES = re.compile(r"\s*(\d{1,99})\s*(?:([KMGT])i?)?B?\s*", re.IGNORECASE | re.ASCII)


def read_bytes(name, n):
    """A count of bytes, from an integer, or from a text with binary units: '256M', '4G'. Errors begin with `name`."""
    if isinstance(n, str):
        match = BYTES.fullmatch(n)
        if not match:
            raise ValueError(f"{name}: expected a number of bytes such as 1048576, 256M or 4G, got {short_repr(n)}")
        nbytes = int(match[1]) << 10 * " KMGT".index((match[2] or " ").upper())
        return min(nbytes, sys.maxsize)  # a limit above all addresses is none
    n = read_count(name, n)
    if not 0 <= n <= sys.maxsize:
        raise ValueError(f"{name}: expected 0 to {sys.maxsize} bytes, got {short_repr(n)}")
    return n


def bytes_from_environment(name, default):
    """The value of the environment variable `name`, or the default if it is not set, or empty."""
    text = os.environ.get(name)
    return read_bytes(f"environment variable {name}", text) if text else default


def physical_memory():
    """The machine's memory in bytes, or the control group's limit if that is lower."""
    limits = [sys.maxsize]
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        pass
    for text in control_files("memory.max", "memory", "memory.limit_in_bytes"):
        if text[0].isdigit():  # else "max"
            limits.append(int(text[0]))
    return min([limit for limit in limits if limit > 0])


# ---------------------------------------------------------------- processors

# Calls from Python determine these once in each process, because C callers cannot. 0 and -1: not known yet.
forks = 0
cdef Py_ssize_t cpu_share = 0
cdef Py_ssize_t is_child = -1
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
    if tilecore_atomic_load(&cpu_share) == 0:
        tilecore_atomic_store(&cpu_share, 1 if in_multiprocessing_child() else cpu_quota())
    return 0


def cpu_quota():
    """The control group's quota in processors, rounded up."""
    quotas = [
        (int(quota), int(period))
        for quota, period in control_files("cpu.max", "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        if quota.isdigit() and int(period) > 0  # else "max", or -1 in version 1
    ]
    return max(1, min([-(-quota // period) for quota, period in quotas], default=sys.maxsize))


cpdef bint in_multiprocessing_child() except -1:
    """Whether this process is one of several that share the machine's processors and memory.

    `sys.modules` is read only once. Without the GIL, another thread may hold the dict's lock during a fork(), and then
    it stays locked in the child. No function of multiprocessing is called, because another thread may still be
    importing it. In that case its names are missing, and no child has been started.
    """
    cdef Py_ssize_t child = tilecore_atomic_load(&is_child)
    if child < 0:
        process = sys.modules.get("multiprocessing.process")
        # A spawned child imports the main module before it has a parent process.
        inherits = getattr(getattr(process, "_current_process", None), "_inheriting", False)
        child = bool(inherits) or getattr(process, "_parent_process", None) is not None
        tilecore_atomic_store(&is_child, child)
    return child


cdef bint in_main_thread() noexcept nogil:
    """Whether Python delivers signals to this thread."""
    return PyThread_get_thread_ident() == main_thread


def forget_process():
    """Reset the state in a forked child before multiprocessing does: the forking thread is now the main thread."""
    global forks, main_thread
    forks += 1
    main_thread = PyThread_get_thread_ident()
    tilecore_atomic_store(&is_child, -1)
    tilecore_atomic_store(&cpu_share, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_process)


# ---------------------------------------------------------------- control groups

def control_files(unified, controller, *legacy):
    """The words of a control file: a list for this process' control group, and one for every group above it.

    Version 2 has one file with all words. Version 1 has one file (`legacy`) for each word.
    """
    found = []
    for line in filter(None, read_text("/proc/self/cgroup").split("\n")):  # paths may contain spaces
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = "/sys/fs/cgroup", (unified,)
        elif controller in controllers.split(","):
            root, names = f"/sys/fs/cgroup/{controller}", legacy
        else:
            continue
        groups = [part for part in path.split("/") if part]
        for depth in range(len(groups) + 1):
            folder = "/".join([root, *groups[:depth]])
            words = [word for name in names for word in read_text(f"{folder}/{name}").split()]
            if len(words) >= len(legacy):
                found.append(words)
    return found


def read_text(path):
    """The text of a file, or "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:  # only Linux has these files
        if error.errno is None:  # a signal handler has raised it
            raise
        return ""
