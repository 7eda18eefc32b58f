from typing import SupportsIndex

def recycled_bytes() -> int:
    """How much memory is kept idle for later results.

    >>> import numpy, tilecore
    >>> tilecore.release_memory()
    >>> x = tilecore.tile(numpy.zeros((1024, 1024)), (4, 1))    # (4096, 1024): 32 MiB
    >>> del x
    >>> tilecore.recycled_bytes() in (0, 2**25)                 # 0 but on Linux
    True

    The memory of results of 32 MiB and more that have been garbage-collected is kept, and written
    again by later results of a similar size, for the system takes longer to provide new memory
    than tiling takes. The process looks as much larger; the system may take the memory at any
    time (``MADV_FREE``). Only Linux has this.

    Returns
    -------
    int
        Bytes; at most `get_recycle_limit()`.

    See Also
    --------
    set_recycle_limit, release_memory
    """

def get_recycle_limit() -> int:
    """The most memory, in bytes, that is kept idle for later results; see `set_recycle_limit`.

    >>> import tilecore
    >>> tilecore.get_recycle_limit() >= 0
    True
    """

def set_recycle_limit(n: SupportsIndex | str, /) -> None:
    """Keep at most `n` bytes of memory idle for later results.

    >>> import tilecore
    >>> before = tilecore.get_recycle_limit()
    >>> tilecore.set_recycle_limit(0)           # every result's memory goes back at once
    >>> tilecore.set_recycle_limit(before)

    By default the smaller of 1 GiB and 1/16 of the physical memory (the cgroup's limit where
    lower), or what the environment variable ``TILECORE_RECYCLE_BYTES`` says; nothing in a child
    process of multiprocessing, unless the variable is set or the child calls this function.

    Nothing is kept, whatever `n` is, while the process has a limit of addresses or data (``RLIMIT_AS``,
    ``RLIMIT_DATA``; ``ulimit -v``, ``ulimit -d``). Such a limit counts idle memory, though the system may
    take it back, and other allocations would fail for it. A limit that is set later returns what is idle
    with the next large result; call `release_memory` to have it at once.

    Parameters
    ----------
    n : int
        Bytes, 0 or more. Results larger than that are not kept. What is idle beyond it goes back
        to the system at once, the oldest first.

    Raises
    ------
    TypeError
        Where `n` is not an integer.
    ValueError
        Where `n` is negative or more than fits 64 bits.

    See Also
    --------
    recycled_bytes, release_memory
    """

def release_memory() -> None:
    """Return all idle memory to the system; see `recycled_bytes`.

    >>> import tilecore
    >>> tilecore.release_memory()
    >>> tilecore.recycled_bytes()
    0
    """
