"""Sources that no loop of a nest runs along, packed. See pack.pyx."""

from tilecore._core.plan.nest cimport MOST_AXES, Axis, Nest
from tilecore._core.write.processor cimport tilecore_shuffles


cdef enum Packer:
    TURN, PICK, GATHER


cdef struct Panels:
    const Nest *nest
    Packer packer
    Py_ssize_t item             # bytes
    Py_ssize_t nbytes           # of a panel that is packed
    Py_ssize_t cell_bytes       # of scratch for turn, beside the panel
    bint direct                 # nothing repeats: it is packed in its place in the output
    bint stream                 # stores into the output bypass the cache
    int where                   # and how `transpose` writes: TILECORE_BY_TILES ...
    # The axes of the source, in the order of the output, innermost first.
    Axis axis[MOST_AXES]
    Py_ssize_t count[MOST_AXES]  # steps of a panel
    Py_ssize_t packed[MOST_AXES]  # bytes per step in a panel
    int n
    int inner, across           # the two that the packer goes along; the others are loops round it
    int unit                    # the one of the shortest steps in the source, but for the innermost; 0: there is none
    int joined                  # one that continues the unit's few steps in the source, and is turned with it; or 0
    tilecore_shuffles shuffles  # for pick
    Py_ssize_t parts            # in which what is made of a panel is written, for threads and for looks for signals
    Py_ssize_t total            # of parts, of all panels


cdef bint packs_first(const Nest *nest, Nest *first, Nest *others) noexcept nogil
cdef bint choose_panels(Panels *panels, const Nest *nest, bint stream, bint warm) noexcept nogil
cdef void find_panel(const Panels *panels, Py_ssize_t number, Py_ssize_t *count, char **dst,
                     const char **src) noexcept nogil
cdef void pack_panel(const Panels *panels, const Py_ssize_t *count, char *dst, const char *src,
                     char *cells) noexcept nogil
cdef void panel_nest(const Panels *panels, const Py_ssize_t *count, bint packed, Nest *nest) noexcept nogil
