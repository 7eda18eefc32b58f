"""The kernels, as kernels.h declares and explains them, and what was chosen for this processor."""


cdef extern from "kernels/kernels.h" nogil:
    ctypedef struct tilecore_rows:
        void (*write)(const tilecore_rows *self, char *dst, const char *src,
                      Py_ssize_t rows, Py_ssize_t repeats) noexcept nogil

    ctypedef struct tilecore_shuffles:
        pass

    ctypedef struct tilecore_set:
        const char *name
        unsigned needs
        void (*copy)(char *dst, const char *src, Py_ssize_t bytes) noexcept nogil
        void (*stream)(char *dst, const char *src, Py_ssize_t bytes) noexcept nogil
        void (*stream_end)() noexcept nogil
        void (*replicate)(char *dst, Py_ssize_t bytes, Py_ssize_t count) noexcept nogil
        void (*write_small)(const tilecore_set *self, int ndim, const Py_ssize_t *shape,
                            const Py_ssize_t *repeats, Py_ssize_t itemsize, char *dst, const char *src) noexcept nogil
        void (*transpose)(char *dst, Py_ssize_t dst_pitch, const char *src, Py_ssize_t src_pitch, Py_ssize_t rows,
                          Py_ssize_t columns, Py_ssize_t item, int store_mode, char *cells) noexcept nogil
        int large_store_mode
        void (*deinterleave)(const tilecore_shuffles *self, char *dst, Py_ssize_t dst_pitch, const char *src,
                             Py_ssize_t src_pitch, Py_ssize_t rows, Py_ssize_t count, bint stream) noexcept nogil

    const tilecore_set *tilecore_sets[]
    void tilecore_movsb(char *dst, const char *src, Py_ssize_t bytes)
    enum: TILECORE_CELL_BYTES, TILECORE_ALIAS_BYTES, TILECORE_BY_TILES, TILECORE_BY_STREAM
    void tilecore_prepare_rows(tilecore_rows *self, const tilecore_set *kernels, Py_ssize_t row,
                               Py_ssize_t repeats, Py_ssize_t src_pitch, Py_ssize_t dst_pitch, Py_ssize_t rows,
                               int in_first_cache)

cdef extern from "kernels/packing.h" nogil:
    int tilecore_prepare_deinterleave(tilecore_shuffles *self, Py_ssize_t items, Py_ssize_t along, Py_ssize_t step,
                                      Py_ssize_t item)
    void tilecore_gather(char *dst, Py_ssize_t dst_pitch, Py_ssize_t dst_step, const char *src, Py_ssize_t src_pitch,
                         Py_ssize_t src_step, Py_ssize_t rows, Py_ssize_t count, Py_ssize_t item)


cdef inline bint packs_items(Py_ssize_t itemsize) noexcept nogil:
    """Whether transpose, deinterleave and gather take items of this size: 1, 2, 4, 8 or 16 bytes."""
    return itemsize <= 16 and itemsize & (itemsize - 1) == 0


# Chosen once, when the module is imported, and only read afterwards, so any thread may.
cdef const tilecore_set *kernels
cdef Py_ssize_t stream_bytes    # outputs of this size or more are written past the caches, unless calls learn better
cdef Py_ssize_t cached_bytes    # half of the last cache, at most 20 MiB: by timings, it holds an output of this size
cdef Py_ssize_t movsb_bytes     # blocks of this size or more are copied by tilecore_movsb
