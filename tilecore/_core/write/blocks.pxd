from tilecore._core.plan.nest cimport MAX_AXES, Axis, Nest
from tilecore._core.write.processor cimport tilecore_rows


cdef extern from "kernels/config.h" nogil:
    Py_ssize_t TILECORE_BLOCK_BYTES


cdef struct Blocks:
    # The block: its axes, innermost first.
    Axis axis[MAX_AXES]
    int n
    int kernel_axes         # how many, from the innermost on, one kernel call writes
    bint by_columns         # a kernel call runs along axis 2, once for each step of axis 1
    bint dense              # a block is contiguous in the output
    bint stream             # stores bypass the cache
    Py_ssize_t last_count   # steps of the outermost axis in the last, shorter block
    tilecore_rows rows      # the kernel, prepared
    # The loops over blocks, innermost first.
    Axis loop[MAX_AXES]
    int loops
    int split               # the last step of this loop is a shorter block; or -1
    Py_ssize_t total        # number of blocks
    # Output and source, set by the caller.
    char *dst
    const char *src


cdef void choose_blocks(Blocks *blocks, const Nest *nest, bint stream, bint reorder) noexcept nogil
cdef void write_blocks(void *blocks, Py_ssize_t first, Py_ssize_t last) noexcept nogil
