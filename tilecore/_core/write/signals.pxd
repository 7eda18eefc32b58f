cdef extern from "kernels/threads.h" nogil:
    long long tilecore_nanoseconds(int of_thread)


cdef struct SignalChecks:   # of one call
    long long next          # time of the next check, in nanoseconds; LLONG_MAX: none
    Py_ssize_t work         # bytes written since the clock was last read


cdef SignalChecks signal_checks(bint on) noexcept nogil
cdef int check_signals(SignalChecks *checks, Py_ssize_t work) noexcept nogil


cdef inline int raise_on_error(int status) except -1:
    """Return `status`; if it is -1, raise the exception that check_signals has set."""
    return status
