"""Checks for signals during a long call.

Python delivers signals to the main thread alone, so only a call in the main thread checks for them (choose_options).
Another thread must not take the GIL here: a daemon thread keeps running while the process ends, and the interpreter may
be gone.
"""

from libc.limits cimport LLONG_MAX

from tilecore._core.config cimport TILECORE_CHECK_BYTES, TILECORE_CHECK_NANOSECONDS, TILECORE_FIRST_CHECK_NANOSECONDS


cdef extern from "Python.h":
    int PyErr_CheckSignals()


cdef SignalChecks signal_checks(bint on) noexcept nogil:
    """The state of a new call. Its first check comes early: a Ctrl-C just before a long call ends that call soon."""
    return SignalChecks(tilecore_nanoseconds(0) + TILECORE_FIRST_CHECK_NANOSECONDS if on else LLONG_MAX, 0)


cdef int check_signals(SignalChecks *checks, Py_ssize_t work) noexcept nogil:
    """Count `work` bytes; check for signals if it is time. Return 0, or -1 with an exception set."""
    cdef long long now
    checks.work += work
    if checks.work < TILECORE_CHECK_BYTES:
        return 0
    checks.work = 0
    now = tilecore_nanoseconds(0)
    if now < checks.next:
        return 0
    checks.next = now + TILECORE_CHECK_NANOSECONDS
    with gil:
        return PyErr_CheckSignals()
