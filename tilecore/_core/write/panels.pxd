from tilecore._core.plan.nest cimport Nest
from tilecore._core.write.packing cimport Packing


cdef struct Panels:
    const Nest *nest        # the loops of the output
    char *dst
    const char *src
    bint direct             # packed into the output, because nothing repeats; else to scratch, and tiled from there
    bint stream             # all stores into the output bypass the caches: of packing, and of tiling
    int store_mode          # how packing writes: TILECORE_BY_TILES ...
    Py_ssize_t cell_bytes   # of scratch for `transpose`, beside the panel
    Py_ssize_t nbytes       # of a packed panel
    Py_ssize_t parts        # of the output of a panel, for threads and checks for signals
    Py_ssize_t total        # parts of all panels
    Packing packing         # how, and how much of each loop is in a panel


cdef bint may_pack(const Nest *nest) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, bint stream,
                        bint prefaulted) noexcept nogil
cdef void write_panels(void *panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil
