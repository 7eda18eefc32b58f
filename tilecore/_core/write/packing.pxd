from tilecore._core.plan.nest cimport MAX_LOOPS, Loop, Nest
from tilecore._core.write.processor cimport tilecore_shuffles


cdef enum Packer:
    TRANSPOSE, DEINTERLEAVE, GATHER


cdef struct Packing:
    Py_ssize_t itemsize
    int n                           # loops in use; loop[0] is an item, loop[n] a single step
    Loop loop[MAX_LOOPS]            # innermost first; none repeats
    Packer packer
    int along_row, to_next_row      # the packer's two loops: along the rows that it writes, and from row to row
    tilecore_shuffles shuffles      # for `deinterleave`


cdef void choose_packer(Packing *packing, const Nest *nest) noexcept nogil
cdef void pack(const Packing *packing, const Py_ssize_t *steps, char *dst, const char *src, int store_mode,
               char *cells) noexcept nogil
