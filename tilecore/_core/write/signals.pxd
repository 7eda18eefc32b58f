"""When a long call looks for signals. See signals.pyx."""


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_WATCH_BYTES
    long long TILECORE_LOOK_MILLISECONDS


cdef extern from "kernels/locks.h" nogil:
    long long tilecore_milliseconds()


cdef struct Watch:          # when to look for signals
    bint on
    Py_ssize_t work         # bytes written since the clock was last read
    long long looked        # when signals were last looked for, in milliseconds


cdef int raise_pending() except -1
cdef void watch_begin(Watch *watch, bint on) noexcept nogil
cdef int look_for_signals(Watch *watch, Py_ssize_t work) noexcept nogil
