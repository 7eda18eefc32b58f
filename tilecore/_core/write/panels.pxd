from tilecore._core.plan.nest cimport MAX_LOOPS, Nest
from tilecore._core.write.blocks cimport Blocks, Memory
from tilecore._core.write.packing cimport Packing


cdef struct Panels:
    const Nest *nest                # the loops of the output
    char *dst
    const char *src
    Memory memory                   # of the output
    Py_ssize_t steps[MAX_LOOPS]     # of each loop in a panel; the last panel along a loop may have fewer
    Py_ssize_t nbytes               # of a packed panel
    Py_ssize_t total                # number of panels
    bint direct                     # packed into the output, because nothing repeats; else to scratch, tiled from there
    int store_mode                  # if direct: how packing writes: TILECORE_BY_TILES ...
    Py_ssize_t unused               # `packing` is aligned to 16 bytes: its shuffles are up to 1.1 times as fast
    Packing packing                 # likewise: the kernel and its loops


cdef bint may_pack(const Nest *nest) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, Memory memory) noexcept nogil
cdef void write_panels(void *panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil
cdef void *new_scratch(const Panels *panels) noexcept nogil
cdef void pack_panel(const Panels *panels, Py_ssize_t number, void *scratch, Blocks *blocks) noexcept nogil
