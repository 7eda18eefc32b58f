from tilecore._core.plan.nest cimport MAX_LOOPS, Nest
from tilecore._core.write.kernels cimport tilecore_shuffles


cdef enum Packer:
    TRANSPOSE, DEINTERLEAVE, GATHER


cdef struct PackedLoop:             # one or more loops of the nest, each of them continuing the last one in the source
    Py_ssize_t count                # steps
    Py_ssize_t src_step, dst_step   # bytes forward in the source, and in the packed panel or the output
    Py_ssize_t in_panel             # of these steps


cdef struct Link:                   # which loop packs a loop of the nest
    int packed                      # its index; 0 for a repeat
    Py_ssize_t packed_steps         # of that loop, for one step of the nest's: 5 for 158 in 790; 0 for a repeat


cdef struct Packing:
    Py_ssize_t itemsize
    bint as_nest                    # the nest's own loops pack: nothing repeats, and the output's order is kept
    int n                           # loops in use; loop[0] is an item, loop[n] a single step
    PackedLoop loop[MAX_LOOPS]      # the loops that pack, innermost first
    Link link[MAX_LOOPS]            # by loop of the nest
    int finest                      # of loops 2 and up, the one of the smallest steps in the source; n: there is none
    Packer packer
    int along_row, to_next_row      # the packer's two loops: along the rows that it writes, and from row to row
    tilecore_shuffles shuffles      # for `deinterleave`


cdef void choose_packer(Packing *packing, const Nest *nest, bint stream) noexcept nogil
cdef void pack(const Packing *packing, const Py_ssize_t *steps, char *dst, const char *src, int store_mode,
               char *cells) noexcept nogil
