"""Chooses, for this processor, the instruction set and the sizes that depend on caches."""

import os

from tilecore._core.request.errors import short_repr

cdef extern from "kernels/kernels.h" nogil:
    ctypedef struct tilecore_processor:
        int quarters
        Py_ssize_t movsb_bytes

    Py_ssize_t TILECORE_LAST_CACHE_BYTES
    Py_ssize_t TILECORE_STREAM_BYTES(Py_ssize_t cache, int quarters), TILECORE_CACHE_QUARTERS(Py_ssize_t cache, int n)
    const char *TILECORE_COMPILER
    unsigned tilecore_features()
    Py_ssize_t tilecore_l3_bytes()
    const tilecore_processor *tilecore_find_processor(unsigned features)


cdef extern from *:
    int CYTHON_HEX_VERSION


cdef unsigned features = tilecore_features()
cdef const tilecore_processor *processor = tilecore_find_processor(features)
cdef Py_ssize_t last_cache = tilecore_l3_bytes() or TILECORE_LAST_CACHE_BYTES


cdef const tilecore_set *find_kernels(unsigned features, str wanted) except NULL:
    """Return the set named `wanted`, or the best one for None, of the sets that need no more than `features`."""
    cdef int i = 0
    cdef list names = []
    while tilecore_sets[i] != NULL:
        if not tilecore_sets[i].needs & ~features:
            name = tilecore_sets[i].name.decode()
            if wanted is None or name == wanted:
                return tilecore_sets[i]
            names.append(name)
        i += 1
    raise ValueError("environment variable TILECORE_ISA: expected one of the instruction sets that this processor "
                     f"has, {', '.join(names)}; got {short_repr(wanted)}")


def instruction_sets():
    """The names of the best set that the processor has, and of the set in use."""
    return {"found": find_kernels(features, None).name.decode(), "used": kernels.name.decode()}


def cache_sizes():
    """The last-level cache, and the size from which results bypass it."""
    return {"last_cache": last_cache, "bypassed_from": stream_bytes}


def build():
    """What this module was compiled with."""
    cython = ".".join([str(CYTHON_HEX_VERSION >> shift & 0xFF) for shift in (24, 16, 8)])
    return {"compiler": TILECORE_COMPILER.decode(), "cython": cython}


kernels = find_kernels(features, os.environ.get("TILECORE_ISA") or None)
stream_bytes = TILECORE_STREAM_BYTES(last_cache, processor.quarters)
cached_bytes = TILECORE_CACHE_QUARTERS(last_cache, 2)
movsb_bytes = processor.movsb_bytes
