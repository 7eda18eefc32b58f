"""What this process may use. See limits.pyx."""


cpdef bint in_multiprocessing_child() except -1
