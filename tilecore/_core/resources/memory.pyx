# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""Allocates results, and limits their size."""

from tilecore._core.request.errors import RequestError
from tilecore._core.request.integers import bytes_from_environment, read_bytes
from tilecore._core.resources.machine import physical_memory
from tilecore._core.resources.recycle import release_memory
from tilecore._units import with_unit

cimport numpy as cnp

from tilecore._core.config cimport TILECORE_MIN_RECYCLED_BYTES
from tilecore._core.numpy_api cimport try_array
from tilecore._core.resources.recycle cimport make_recycled_array

cnp.import_array()


def get_max_bytes():
    """The largest result, in bytes, that tilecore allocates; see `set_max_bytes`.

    >>> import tilecore
    >>> tilecore.get_max_bytes() > 0
    True

    Returns
    -------
    int
        Bytes. The default is the lower of the physical memory and the cgroup's limit. The environment variable
        ``TILECORE_MAX_BYTES`` sets another default when tilecore is imported.
    """
    return max_bytes


def set_max_bytes(n, /):
    """Refuse to allocate results larger than `n` bytes.

    >>> import tilecore
    >>> before = tilecore.get_max_bytes()
    >>> tilecore.set_max_bytes(1 << 20)
    >>> tilecore.tile([1, 2, 3], 10**6)         # doctest: +ELLIPSIS
    Traceback (most recent call last):
    MemoryError: tile: the result would take 24000000 bytes, more than the limit of 1048576 bytes, ...
    >>> tilecore.set_max_bytes(before)

    This guards against hostile or mistaken repeats: the error comes before anything is allocated. Results that
    are written into ``out=`` are not limited.

    Parameters
    ----------
    n : int or str
        Bytes, 0 or more; or a string with a suffix, such as ``"256M"`` or ``"4G"``.

    Raises
    ------
    TypeError
        If `n` is neither an integer nor a string.
    ValueError
        If `n` is negative, does not fit 64 bits, or is a string that does not express a number of bytes.
    """
    global max_bytes
    max_bytes = read_bytes("set_max_bytes", n)


cdef int check_size(Py_ssize_t nbytes, what="the result") except -1:
    if nbytes > max_bytes:
        raise RequestError(MemoryError, f"{what} would take {format_bytes(nbytes)}, more than the limit of "
                           f"{format_bytes(max_bytes)}, see tilecore.set_max_bytes")
    return 0


cdef no_memory_error(nbytes):
    return RequestError(MemoryError, f"no memory for a result of {format_bytes(nbytes)}")


cdef format_bytes(nbytes):
    """`12000000000000 bytes (12 TB)`; without the unit below a gigabyte."""
    return f"{nbytes} bytes" if nbytes < 10**9 else f"{nbytes} bytes ({with_unit(nbytes, 'B')})"


cdef cnp.ndarray new_array(int ndim, Py_ssize_t *shape, cnp.dtype dtype, Py_ssize_t nbytes, bint *prefaulted):
    """A new C-contiguous array; an error above the limit. References in it are NULL, for the caller to set.

    Sets `prefaulted` to whether most of its pages are mapped.
    """
    check_size(nbytes)
    prefaulted[0] = False
    if nbytes >= TILECORE_MIN_RECYCLED_BYTES:
        array = make_recycled_array(ndim, shape, dtype, nbytes, prefaulted)
        if array is not None:
            return array
    array = try_array(ndim, shape, dtype, NULL, 0)
    if array is None:
        release_memory()
        array = try_array(ndim, shape, dtype, NULL, 0)
        if array is None:
            raise no_memory_error(nbytes)
    return array


set_max_bytes(bytes_from_environment("TILECORE_MAX_BYTES", physical_memory()))
