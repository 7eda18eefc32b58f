"""Sources that no loop of a nest runs along, packed. See panels.pyx."""

from tilecore._core.plan.nest cimport MOST_AXES, Nest
from tilecore._core.write.processor cimport tilecore_shuffles


cdef enum:
    # A panel has this many bytes along the source, and as many along the output: enough for the processor to read
    # ahead, and for stores that bypass the cache. It lies in the second-level cache.
    SIDE_BYTES = 512


cdef enum Packer:
    TRANSPOSE, DEINTERLEAVE, GATHER


cdef struct Panels:
    const Nest *nest                # the loops of the output
    char *dst
    const char *src
    Packer packer
    Py_ssize_t item                 # bytes
    Py_ssize_t nbytes               # of a panel that is packed
    Py_ssize_t cell_bytes           # of scratch for `transpose`, beside the panel
    bint direct                     # nothing repeats: it is packed in its place in the output
    bint stream                     # stores into the output bypass the cache
    int where                       # how `transpose` writes: TILECORE_BY_TILES ...
    # The loops of the output: those that repeat are whole in each panel.
    Py_ssize_t count[MOST_AXES]     # steps in a panel
    Py_ssize_t packed[MOST_AXES]    # bytes per step in a panel
    # The loops that move in the source, in the order in which they are packed.
    int n
    int level[MOST_AXES]            # in `nest`
    int merged[MOST_AXES]           # in `source`, which merges those that follow each other in the source
    Nest source
    int inner, across               # the two of `source` that the packer goes along; the others are loops round it
    int unit                        # the axis of the shortest steps, but for the innermost; 0: there is none
    tilecore_shuffles shuffles      # for `deinterleave`
    Py_ssize_t chunks               # of what is made of a panel, for threads and for checks for signals
    Py_ssize_t total                # chunks of all panels


cdef bint runs_along(const Nest *nest) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, char *dst, const char *src, bint stream,
                        bint prefaulted) noexcept nogil
cdef void write_panels(void *panels, Py_ssize_t first, Py_ssize_t last) noexcept nogil
