# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""How many threads may write one large result. How many do write it is decided by choose_threads, in tiling.pyx."""

import inspect
import os
import re
from contextlib import ContextDecorator
from contextvars import ContextVar

cimport cython

from tilecore._core.request.errors import short_repr
from tilecore._core.request.integers import read_count
from tilecore._core.atomic cimport tilecore_atomic_load, tilecore_atomic_store
from tilecore._core.config cimport TILECORE_MAX_THREADS
from tilecore._core.resources.process_state cimport find_cpu_share, usable_cpus


cdef enum:
    MAX_BY_DEFAULT = 8     # a guess: nobody has measured more than two CPUs

# 0: nothing was chosen. Other threads read the old choice or the new one.
cdef Py_ssize_t environment_threads = 0
cdef Py_ssize_t process_threads = 0      # by set_num_threads, else by the environment
cdef object by_context = ContextVar("tilecore_num_threads", default=())   # the num_threads blocks being executed


def get_num_threads():
    """The maximum number of threads that write one result.

    >>> import tilecore
    >>> with tilecore.num_threads(2):
    ...     tilecore.get_num_threads()
    2

    Returns
    -------
    int
        The first of these that applies: the number set by `num_threads` in the current context; the number set by
        `set_num_threads` or the environment variable ``TILECORE_NUM_THREADS``; 1 in a child process of multiprocessing;
        the number of CPUs that the calling thread may use now (affinity mask and control-group quota), at most 8.

    Notes
    -----
    Two threads may write a result of 1 MiB; three and more write at least 2 MiB each. Between calls the threads sleep
    and use no CPU time. They run on the other CPUs that their caller may use (``os.sched_setaffinity``). If one thread
    would have been faster, as on a busy machine, the next calls use one. So do results below 8 MiB in memory that is
    new to the process. Neither applies to calls with ``threads=``.
    """
    return max_threads()


cdef int max_threads() except -1:
    entered = by_context.get()
    if entered:
        return entered[len(entered) - 1]._count
    find_cpu_share()
    return default_threads()


cdef int default_threads() noexcept nogil:
    """The number outside num_threads blocks. After fork() it is 1 until a call from Python finds the CPU share."""
    cdef Py_ssize_t chosen = tilecore_atomic_load(&process_threads)
    return <int>(chosen if chosen else min(usable_cpus(), MAX_BY_DEFAULT))


def set_num_threads(n):
    """Let at most `n` threads write one result, in the whole process.

    >>> import tilecore
    >>> before = tilecore.get_num_threads()
    >>> tilecore.set_num_threads(1)
    >>> tilecore.get_num_threads()
    1
    >>> tilecore.set_num_threads(None)
    >>> tilecore.get_num_threads() == before
    True

    Parameters
    ----------
    n : int, or None
        At least 1; more than 256 mean 256. None restores the value of ``TILECORE_NUM_THREADS`` if it was set, else the
        default.

    Raises
    ------
    TypeError, ValueError
        If `n` is neither an integer nor None; if it is less than 1.
    """
    tilecore_atomic_store(&process_threads, environment_threads if n is None else read_maximum("set_num_threads", n))


@cython.embedsignature(False)  # `help` would show it as text
class num_threads(ContextDecorator):
    """Let at most `n` threads write one result, within a ``with`` block or a decorated function.

    >>> import numpy, tilecore
    >>> with tilecore.num_threads(1):
    ...     tilecore.tile(numpy.zeros((512, 512)), (2, 2)).shape     # from (512, 512)
    (1024, 1024)

    It applies to the current context: other threads and asyncio tasks are not affected. A thread started in the
    block is affected only if threads inherit the context (``sys.flags.thread_inherit_context``, the default in
    free-threaded Python from 3.14 on).

    Parameters
    ----------
    n : int
        At least 1; TypeError or ValueError as in `set_num_threads`.

    Raises
    ------
    TypeError
        If it decorates a generator or a coroutine, whose code runs after the call: use ``with`` inside it.
    """

    def num_threads(self, n):  # errors of missing and unknown arguments show this name
        self._count = read_maximum("num_threads", n)

    __init__ = num_threads
    del num_threads

    def __repr__(self):
        return f"tilecore.num_threads({self._count})"

    def __call__(self, func):
        for is_kind in inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction:
            if is_kind(func):
                raise TypeError("num_threads: a generator or a coroutine cannot be decorated; use `with` inside it")
        return super().__call__(func)

    def __enter__(self):
        by_context.set((*by_context.get(), self))

    def __exit__(self, *exception):
        # A token of the ContextVar would not do: one object may be entered several times, also in several contexts, and
        # left in another one. The event loop closes an unfinished async generator in its own context.
        entered = by_context.get()
        for k in range(len(entered) - 1, -1, -1):
            if entered[k] is self:
                by_context.set(entered[:k] + entered[k + 1:])
                break


cdef Py_ssize_t read_maximum(name, n) except -1:
    count = read_count(name, n)
    if count < 1:
        raise ValueError(f"{name}: expected at least 1 thread, got {short_repr(count)}")
    return min(count, TILECORE_MAX_THREADS)


cdef object chosen = os.environ.get("TILECORE_NUM_THREADS")
if chosen:
    if not re.fullmatch(r"\s*0{0,99}[1-9][0-9]{0,99}\s*", chosen):
        raise ValueError("environment variable TILECORE_NUM_THREADS: expected an integer of at least 1, "
                         f"got {short_repr(chosen)}")
    environment_threads = process_threads = read_maximum("TILECORE_NUM_THREADS", int(chosen))
