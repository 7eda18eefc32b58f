from tilecore._core.plan.nest cimport MAX_LOOPS, Nest
from tilecore._core.write.processor cimport tilecore_shuffles


cdef enum Packer:
    TRANSPOSE, DEINTERLEAVE, GATHER


cdef struct Panels:
    const Nest *nest                # the loops of the output
    char *dst
    const char *src
    Packer packer
    Py_ssize_t itemsize
    Py_ssize_t nbytes               # of a packed panel
    Py_ssize_t cell_bytes           # of scratch for `transpose`, beside the panel
    bint direct                     # nothing repeats, in the output's order: panels are packed directly into the output
    bint stream                     # stores into the output bypass the cache
    int store_mode                  # how `transpose` writes: TILECORE_BY_TILES ...
    # By loop of `nest`. Loops that repeat are whole in each panel.
    Py_ssize_t count[MAX_LOOPS]     # steps in a panel
    Py_ssize_t step[MAX_LOOPS]      # bytes per step in a panel; 0 for a repeat
    # The loops that move in the source, in the order in which they are packed.
    int n
    int level[MAX_LOOPS]            # index of the loop in `nest`
    int merged[MAX_LOOPS]           # index in `packing`
    # The same loops, each merged with the one that it continues in the source; `dst`: in the output if direct, else in
    # the panel.
    Nest packing
    int inner, across               # the loops of `packing` that the packer takes; the others are around them
    int unit                        # of loops 2 and up, the one of the smallest source stride; 0: there is none
    tilecore_shuffles shuffles      # for `deinterleave`
    Py_ssize_t parts                # of the output of a panel, for threads and checks for signals
    Py_ssize_t total                # parts of all panels


cdef bint needs_packing(const Nest *nest) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, bint stream,
                        bint prefaulted) noexcept nogil
cdef void write_panels(void *panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil
