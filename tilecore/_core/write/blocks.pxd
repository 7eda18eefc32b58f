from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, Nest
from tilecore._core.resources.processor cimport tilecore_rows
from tilecore._core.write.stores cimport Stores


cdef struct Blocks:
    # The loops of a block, innermost first.
    Loop inner[MAX_LOOPS]
    int n_inner
    int loops_in_kernel     # how many, from the innermost on, kernel calls write
    int row_loop            # the loop over a call's rows; 0: none, a call writes one row and its repeats
    Py_ssize_t repeats      # of each row, directly after it
    int call_loop           # the loop over calls; 0: none, one call writes the block
    bint dense              # a block is contiguous in the output
    bint stream             # stores bypass the cache
    Py_ssize_t last_count   # steps of the outermost inner loop in the last, shorter block
    # The loops over blocks, innermost first.
    Loop outer[MAX_LOOPS]
    int n_outer
    int split               # the outer loop over the parts of a split loop, or -1; the last part may be shorter
    Py_ssize_t total        # number of blocks
    char *dst
    const char *src
    tilecore_rows rows      # the kernel, prepared


cdef void choose_blocks(Blocks *blocks, const Nest *nest, char *dst, const char *src, Stores stores) noexcept nogil
cdef void write_blocks(void *blocks, Py_ssize_t first, Py_ssize_t last) noexcept nogil
