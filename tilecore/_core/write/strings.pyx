"""Strings of variable length (numpy.dtypes.StringDType): packed again, one by one.

A short string lies in its item; a longer one in memory of the array's dtype, under a lock. So a copy of the items does
not do. The lock is held for some hundred thousand strings, then others get a turn.
"""

from tilecore._core.request.refusals import Refusal

cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.string cimport memcpy

from tilecore._core.resources.memory cimport max_bytes
from tilecore._core.write.walk cimport TURN_REFERENCES, Walk, go_past, check_held, run_of, take_turn

cnp.import_array()

cdef enum:
    ITEM_BYTES = 16  # a string that is shorter lies in its item


cdef extern from "numpy/arrayobject.h":
    ctypedef struct npy_packed_static_string:
        pass
    ctypedef struct npy_string_allocator:
        pass
    ctypedef struct npy_static_string:
        size_t size
        const char *buf
    ctypedef struct PyArray_Descr:
        pass
    int NpyString_load(npy_string_allocator *allocator, const npy_packed_static_string *packed,
                       npy_static_string *unpacked) noexcept
    int NpyString_pack(npy_string_allocator *allocator, npy_packed_static_string *packed, const char *buf,
                       size_t size) noexcept
    int NpyString_pack_null(npy_string_allocator *allocator, npy_packed_static_string *packed) noexcept
    void acquire_two "NpyString_acquire_allocators" (size_t n, PyArray_Descr **descriptors,
                                                     npy_string_allocator **allocators) noexcept
    void NpyString_release_allocators(size_t n, npy_string_allocator **allocators) noexcept


cdef int write_strings(Walk *walk, bint is_new, Py_ssize_t *left) except -1:
    """Pack each string of the walk again; a Refusal if those outside the items take more than `left` bytes.

    `is_new`: the target's items hold nothing yet.
    """
    cdef (PyArray_Descr *)[2] dtypes = [<PyArray_Descr *>walk.source.dtype, <PyArray_Descr *>walk.target.dtype]
    cdef (npy_string_allocator *)[2] memory
    cdef Py_ssize_t n, i, work
    cdef bint packed = True
    # In the order of their addresses: else two calls might wait for each other's lock for ever.
    cdef int of = <size_t>dtypes[0] > <size_t>dtypes[1]
    dtypes[of], dtypes[1 - of] = <PyArray_Descr *>walk.source.dtype, <PyArray_Descr *>walk.target.dtype
    while True:
        work = 0
        check_held(walk.source, walk.target)
        acquire_two(2, dtypes, memory)
        while packed and work < TURN_REFERENCES and not walk.done:
            n = run_of(walk, TURN_REFERENCES - work)
            for i in range(n):
                packed = pack_string(memory[1 - of], walk.dst + i * walk.window.step[0].dst,
                                     memory[of], walk.src + i * walk.window.step[0].src, is_new, &work, left)
                if not packed or work >= TURN_REFERENCES:
                    n = i + 1
                    break
            go_past(walk, n)
        NpyString_release_allocators(2, memory)
        if left[0] < 0:
            raise Refusal(MemoryError, "the strings of the result would take more than the limit of "
                          f"{max_bytes} bytes (tilecore.set_max_bytes)")
        if not packed:
            raise MemoryError
        if walk.done:
            return 0
        take_turn()


cdef bint pack_string(npy_string_allocator *to, char *dst, npy_string_allocator *of, const char *src,
                      bint is_new, Py_ssize_t *work, Py_ssize_t *left) noexcept:
    """False where there is no memory or, with `left` below 0, no more is allowed."""
    cdef npy_static_string text = npy_static_string(0, NULL)
    cdef int missing = NpyString_load(of, <const npy_packed_static_string *>src, &text)
    cdef char *copy
    cdef int status
    work[0] += 1 + <Py_ssize_t>(text.size // 64)
    if missing < 0:
        return False
    if is_new and text.size > 0 and <size_t>text.buf - <size_t>src < sizeof(npy_static_string):
        memcpy(dst, src, sizeof(npy_static_string))  # it lies in its item: there is no more to it
        return True
    if text.size >= ITEM_BYTES:
        left[0] -= <Py_ssize_t>text.size
        if left[0] < 0:
            return False
    if missing:
        return NpyString_pack_null(to, <npy_packed_static_string *>dst) >= 0
    if to != of or text.size == 0:
        return NpyString_pack(to, <npy_packed_static_string *>dst, text.buf, text.size) >= 0
    copy = <char *>PyMem_Malloc(text.size)  # packing may move what lies in the same memory
    if copy == NULL:
        return False
    memcpy(copy, text.buf, text.size)
    status = NpyString_pack(to, <npy_packed_static_string *>dst, copy, text.size)
    PyMem_Free(copy)
    return status >= 0
