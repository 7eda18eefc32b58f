from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, Nest
from tilecore._core.write.blocks cimport Blocks
from tilecore._core.resources.processor cimport tilecore_shuffles
from tilecore._core.write.stores cimport Stores


cdef enum Packer:
    TRANSPOSE, DEINTERLEAVE, GATHER


cdef struct Packing:
    Py_ssize_t itemsize
    int n                           # loops in use; loop[0] is an item, loop[n] a single step
    Loop loop[MAX_LOOPS]            # innermost first; none repeats
    Packer packer
    int along_row, to_next_row      # the packer's two loops: along the rows that it writes, and from row to row
    tilecore_shuffles shuffles      # for `deinterleave`


cdef struct Panels:
    const Nest *nest                # the loops of the output
    char *dst
    const char *src
    Stores stores                   # into the output
    Py_ssize_t steps[MAX_LOOPS]     # of each loop in a panel; the last panel along a loop may have fewer
    Py_ssize_t nbytes               # of a packed panel
    Py_ssize_t total                # number of panels
    bint direct                     # packed into the output, because nothing repeats; else to scratch, tiled from there
    int store_mode                  # if direct: how packing writes: TILECORE_BY_TILES ...
    Py_ssize_t padding              # so that `packing` is aligned to 16 bytes: shuffles are up to 1.1 times as fast
    Packing packing                 # if direct: the kernel and its loops


cdef bint may_pack(const Nest *nest) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, Stores stores) noexcept nogil
cdef void write_panels(void *panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil
cdef void *new_scratch(const Panels *panels) noexcept nogil
cdef void pack_panel(const Panels *panels, Py_ssize_t number, void *scratch, Blocks *blocks) noexcept nogil
