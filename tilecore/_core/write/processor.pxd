from tilecore._core.write.kernels cimport tilecore_set


# Chosen once, when the module is imported, and only read afterwards, so any thread may.
cdef const tilecore_set *kernels
cdef Py_ssize_t stream_bytes    # results of this size or more bypass the caches, unless hot.h has learnt better
cdef Py_ssize_t move_bytes      # blocks of this size or more are copied by tilecore_move
