from tilecore._core.plan.nest cimport MAX_AXES, Nest
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
    bint direct                     # nothing repeats: panels are packed directly into the output
    bint stream                     # stores into the output bypass the cache
    int store_mode                  # how `transpose` writes: TILECORE_BY_TILES ...
    # By loop of `nest`. Loops that repeat are whole in each panel.
    Py_ssize_t count[MAX_AXES]      # steps in a panel
    Py_ssize_t packed[MAX_AXES]     # bytes per step in a panel
    # The loops that move in the source, in the order in which they are packed.
    int n
    int level[MAX_AXES]             # index of the loop in `nest`
    int merged[MAX_AXES]            # index of its axis in `source`
    Nest source                     # the same loops: an axis that continues another one in the source is merged with it
    int inner, across               # the axes of `source` that the packer writes; the others are loops around it
    int unit                        # the source axis of the smallest stride, after axis 1; 0: there is none
    tilecore_shuffles shuffles      # for `deinterleave`
    Py_ssize_t chunks               # of the output of a panel, for threads and checks for signals
    Py_ssize_t total                # chunks of all panels


cdef bint runs_along(const Nest *nest) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, bint stream,
                        bint prefaulted) noexcept nogil
cdef void write_panels(void *panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil
