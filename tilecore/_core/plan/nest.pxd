"""The loops that write a tiling. See nest.pyx for the essay."""

from tilecore._core.numpy_api cimport MAX_RANK
from tilecore._core.plan.sizes cimport Sizes


cdef struct Axis:
    Py_ssize_t count  # steps, at least 1
    Py_ssize_t src    # bytes per step in the source: 0 for a repeat
    Py_ssize_t dst    # bytes per step in the output


cdef struct Nest:
    int n                           # axes in use; axis[0] is a run of bytes: src 1, dst 1
    Py_ssize_t src, dst             # where the first run lies, from the start of source and output
    Axis axis[2 * MAX_RANK + 1]     # innermost first


cdef inline void nest_begin(Nest *nest, Py_ssize_t itemsize) noexcept nogil:
    nest.n = 1
    nest.src = nest.dst = 0
    nest.axis[0] = Axis(itemsize, 1, 1)


cdef inline void nest_push(Nest *nest, Py_ssize_t count, Py_ssize_t src, Py_ssize_t dst) noexcept nogil:
    """Add a loop around the nest, or merge it with the outermost loop if it only continues that."""
    cdef Axis *top = &nest.axis[nest.n - 1]
    if count == 1:
        return
    if top.dst * top.count == dst and top.src * top.count == src:
        top.count *= count
    else:
        nest.axis[nest.n] = Axis(count, src, dst)
        nest.n += 1


cdef inline Py_ssize_t magnitude(Py_ssize_t stride) noexcept nogil:
    return -stride if stride < 0 else stride


cdef void order_axes(const Sizes *sizes, const Py_ssize_t *strides, int *order) noexcept nogil
cdef void nest_init(const Sizes *sizes, const Py_ssize_t *src_strides, const Py_ssize_t *dst_strides,
                    Nest *nest) noexcept nogil
