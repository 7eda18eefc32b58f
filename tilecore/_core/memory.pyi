from typing import SupportsIndex

def get_max_bytes() -> int:
    """The largest result, in bytes, that tilecore allocates.

    >>> import tilecore
    >>> tilecore.get_max_bytes() > 0
    True

    Returns
    -------
    int
        Bytes. By default the physical memory (the cgroup's limit where lower), or what the
        environment variable ``TILECORE_MAX_BYTES`` said when tilecore was imported.

    See Also
    --------
    set_max_bytes
    """

def set_max_bytes(n: SupportsIndex | str, /) -> None:
    """Refuse to allocate results larger than `n` bytes.

    >>> import tilecore
    >>> before = tilecore.get_max_bytes()
    >>> tilecore.set_max_bytes(1 << 20)
    >>> tilecore.tile([1, 2, 3], 10**6)
    Traceback (most recent call last):
    ...
    MemoryError: tile: the result would take 24000000 bytes, more than the limit of 1048576 bytes (tilecore.set_max_bytes); input shape (3,), dtype int64, repeats 1000000
    >>> tilecore.set_max_bytes(before)

    A guard against a hostile or mistaken `repeats`: the error comes before anything is allocated.
    It counts the bytes that would be allocated, so results written into ``out=`` are not limited.

    Parameters
    ----------
    n : int
        Bytes, 0 or more.

    Raises
    ------
    TypeError
        Where `n` is not an integer.
    ValueError
        Where `n` is negative or more than fits 64 bits.
    """
