"""Sources that no loop of a nest runs along, packed. See pack.pyx."""

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.nest cimport Axis, Nest


cdef extern from "kernels/kernels.h" nogil:
    ctypedef struct tilecore_rows:
        void (*write)(const tilecore_rows *self, char *dst, const char *src,
                      Py_ssize_t rows, Py_ssize_t repeats) noexcept nogil

    ctypedef struct tilecore_shuffles:
        pass

    ctypedef struct tilecore_kernels:
        const char *name
        unsigned needs
        void (*copy)(char *dst, const char *src, Py_ssize_t bytes) noexcept nogil
        void (*stream)(char *dst, const char *src, Py_ssize_t bytes) noexcept nogil
        void (*stream_end)() noexcept nogil
        void (*replicate)(char *dst, Py_ssize_t bytes, Py_ssize_t count) noexcept nogil
        void (*turn)(char *dst, Py_ssize_t dst_pitch, const char *src, Py_ssize_t src_pitch, Py_ssize_t rows,
                     Py_ssize_t columns, Py_ssize_t item, bint cached, bint stream) noexcept nogil
        void (*pick)(const tilecore_shuffles *self, char *dst, Py_ssize_t dst_pitch, const char *src,
                     Py_ssize_t src_pitch, Py_ssize_t rows, Py_ssize_t count, bint stream) noexcept nogil

    int tilecore_prepare_pick(tilecore_shuffles *self, Py_ssize_t items, Py_ssize_t along, Py_ssize_t step,
                              Py_ssize_t item)
    void tilecore_gather(char *dst, Py_ssize_t dst_pitch, Py_ssize_t dst_step, const char *src, Py_ssize_t src_pitch,
                         Py_ssize_t src_step, Py_ssize_t rows, Py_ssize_t count, Py_ssize_t item)
    void tilecore_prepare_rows(tilecore_rows *self, const tilecore_kernels *kernels, Py_ssize_t row,
                               Py_ssize_t repeats, Py_ssize_t src_pitch, Py_ssize_t dst_pitch, Py_ssize_t rows,
                               int in_first_cache)


cdef enum Packer:
    TURN, PICK, GATHER


cdef struct Panels:
    const Nest *nest
    const tilecore_kernels *kernels
    Packer packer
    Py_ssize_t item             # bytes
    Py_ssize_t nbytes           # of a panel that is packed
    bint direct                 # nothing repeats: it is packed in its place in the output
    bint stream                 # stores bypass the cache
    # The axes of the source, in the order of the output, innermost first.
    Axis axis[MAX_RANK + 1]
    Py_ssize_t count[MAX_RANK + 1]  # steps of a panel
    Py_ssize_t packed[MAX_RANK + 1]  # bytes per step in a panel
    int n
    int inner, across           # the two that the packer goes along; the others are loops round it
    int unit                    # the one of the shortest steps in the source, but for the innermost; 0: there is none
    tilecore_shuffles shuffles  # for pick
    # What is made of a panel is written in parts, for threads and for looks for signals: of a repeat.
    int split                   # which axis of the nest that is
    Py_ssize_t parts
    Py_ssize_t total            # of parts, of all panels
    char *dst
    const char *src


cdef bint choose_panels(Panels *panels, const Nest *nest, const tilecore_kernels *kernels, bint stream,
                        bint warm) noexcept nogil
cdef void find_panel(const Panels *panels, Py_ssize_t number, Py_ssize_t *count, char **dst,
                     const char **src) noexcept nogil
cdef void pack_panel(const Panels *panels, const Py_ssize_t *count, char *dst, const char *src) noexcept nogil
cdef char *panel_nest(const Panels *panels, const Py_ssize_t *count, Py_ssize_t part, bint packed, char *dst,
                      Nest *nest) noexcept nogil
