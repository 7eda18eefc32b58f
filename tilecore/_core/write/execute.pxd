"""A nest of loops and a source -> bytes of the output. See execute.pyx."""

from tilecore._core.plan.nest cimport MOST_AXES, Axis, Nest
from tilecore._core.write.pack cimport Panels
from tilecore._core.write.processor cimport tilecore_rows
from tilecore._core.write.signals cimport Watch


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_BLOCK_BYTES, TILECORE_NOGIL_BYTES, TILECORE_THREAD_BYTES


ctypedef void (*tilecore_task)(void *job, Py_ssize_t first, Py_ssize_t last) noexcept nogil


cdef struct Blocks:
    # The block: its axes, innermost first.
    Axis axis[MOST_AXES]
    int n
    int kernel_axes         # how many, from the innermost, one kernel call writes
    bint by_columns         # a kernel call goes along axis 2, and there is one for each step of axis 1
    bint dense              # its bytes lie together in the output
    bint stream             # stores bypass the cache
    Py_ssize_t last_count   # steps of its outermost axis in the last, shorter block
    tilecore_rows rows      # the kernel, prepared
    # The loops over blocks, innermost first.
    Axis loop[MOST_AXES]
    int loops
    int split               # the last step of this loop is a shorter block; or -1
    Py_ssize_t total        # blocks


cdef union Units:
    Blocks blocks
    Panels panels


cdef struct Job:            # how a nest is written: by blocks, or by panels
    tilecore_task write
    Units units             # of which this writes some
    Py_ssize_t total
    const Nest *nest
    char *dst
    const char *src


cdef struct Mode:
    int threads   # at most
    bint warm     # the output has been written before, so its pages are there
    bint poll     # look for signals; in the main thread alone


cdef void choose_blocks(Blocks *blocks, const Nest *nest, bint stream, bint reorder) noexcept nogil
cdef void write_one_block(const Blocks *blocks, char *dst, const char *src) noexcept nogil
cdef int execute_units(tilecore_task write, void *job, Py_ssize_t total, Py_ssize_t nbytes, Mode mode,
                       Watch *watch) noexcept nogil
cdef bint stays_alone() noexcept nogil
cdef void write_table(const Py_ssize_t *src_at, const Py_ssize_t *dst_at, Py_ssize_t n, Py_ssize_t itemsize,
                      char *dst, const char *src) noexcept nogil
cdef void choose_job(Job *job, const Nest *nest, Py_ssize_t nbytes, bint warm) noexcept nogil
cdef int execute_job(Job *job, char *dst, const char *src, Py_ssize_t nbytes, Mode mode, Watch *watch) noexcept nogil
cdef int execute(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode mode) noexcept nogil
cdef int execute_watched(const Nest *nest, char *dst, const char *src, Py_ssize_t nbytes, Mode mode,
                         Watch *watch) noexcept nogil
