"""Looks for signals during a long call.

Python delivers signals to the main thread alone, so only a call in the main thread looks for them; choose_mode finds
that out while it holds the GIL. Another thread must not ask for the GIL here: a daemon thread goes on while the process
ends, and the interpreter may be gone.
"""


cdef extern from "Python.h":
    int PyErr_CheckSignals()


cdef int raise_pending() except -1:
    """Let Cython see the exception that is set."""
    return -1


cdef void watch_begin(Watch *watch, bint on) noexcept nogil:
    watch.on = on
    watch.work = 0
    # The first look comes early: a Ctrl-C from before a long call ends it at once.
    watch.looked = tilecore_milliseconds() - TILECORE_LOOK_MILLISECONDS + 5 if on else 0


cdef int look_for_signals(Watch *watch, Py_ssize_t work) noexcept nogil:
    """Count `work`, in bytes, and look for signals if the last look was long ago.

    0, or -1 if a signal handler has raised; the exception stays set, for raise_pending.
    """
    cdef long long now
    if not watch.on:
        return 0
    watch.work += work
    if watch.work < TILECORE_WATCH_BYTES:
        return 0
    watch.work = 0
    now = tilecore_milliseconds()
    if 0 <= now - watch.looked < TILECORE_LOOK_MILLISECONDS:
        return 0
    watch.looked = now
    with gil:
        return PyErr_CheckSignals()
