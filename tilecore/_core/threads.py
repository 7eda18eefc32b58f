"""How many threads write one large result."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import SupportsIndex

from tilecore._core.counts import brief, read_count
from tilecore._core.execute import note_default_threads
from tilecore._core.limits import available_cpus, in_multiprocessing_child

MOST_BY_DEFAULT = 8  # memory bandwidth is used up before that
MOST_OF_ALL = 2**31 - 1  # what a C int holds; "as many as there are" need not know that

# Chosen for the process, by the environment or since; None where nobody has. One reference, so a reader in
# another thread sees the old choice or the new one.
_environment: int | None = None
_process: int | None = None
_context: ContextVar[int | None] = ContextVar("tilecore_num_threads", default=None)
_cpus: int | None = None


def get_num_threads() -> int:
    """How many threads at most write one result.

    >>> import tilecore
    >>> with tilecore.num_threads(2):
    ...     tilecore.get_num_threads()
    2

    Returns
    -------
    int
        What `num_threads` says in the current context; else what `set_num_threads` or the
        environment variable ``TILECORE_NUM_THREADS`` said; else 1 in a child process of
        multiprocessing; else the number of CPUs that this process may use (affinity mask and
        control-group quota), at most 8.

    Results of 1.5 MiB and more are written by more than one thread: by two, and by one more for
    each 768 KiB above that. The threads stay, and take no processor's time between calls.
    """
    return _context.get() or _default()


def _default() -> int:
    """Outside of every context."""
    global _cpus
    if _process:
        return _process
    if in_multiprocessing_child():
        return 1  # its siblings have the other processors
    if _cpus is None:
        _cpus = min(available_cpus(), MOST_BY_DEFAULT)
    return _cpus


def set_num_threads(n: SupportsIndex | None) -> None:
    """Let at most `n` threads write one result, in the whole process.

    >>> import tilecore
    >>> before = tilecore.get_num_threads()
    >>> tilecore.set_num_threads(1)
    >>> tilecore.get_num_threads()
    1
    >>> tilecore.set_num_threads(None)
    >>> tilecore.get_num_threads() == before
    True

    Parameters
    ----------
    n : int, or None
        At least 1. None goes back to what the environment variable ``TILECORE_NUM_THREADS`` says,
        or else to the default.

    Raises
    ------
    TypeError
        Where `n` is neither an integer nor None.
    ValueError
        Where `n` is less than 1.
    """
    global _process
    _process = _environment if n is None else checked("set_num_threads", n)
    tell_c()


def tell_c() -> None:
    """The C functions cannot ask: they run without the GIL, in threads that Python may not know."""
    note_default_threads(_default())


@contextmanager
def num_threads(n: SupportsIndex) -> Iterator[None]:
    """Let at most `n` threads write one result, within a ``with`` block.

    >>> import numpy, tilecore
    >>> with tilecore.num_threads(1):
    ...     tilecore.tile(numpy.zeros((512, 512)), (2, 2)).shape     # from (512, 512)
    (1024, 1024)

    For the current context alone: other threads, and other asyncio tasks, are not affected. A thread
    that is begun inside the block is where it inherits the context (``sys.flags.thread_inherit_context``,
    which from Python 3.14 on is the default without the GIL).

    Parameters
    ----------
    n : int
        At least 1; TypeError or ValueError as in `set_num_threads`.
    """
    token = _context.set(checked("num_threads", n))
    try:
        yield
    finally:
        try:
            _context.reset(token)
        except ValueError:
            # Left in another context, which knows nothing of `n`: an async generator that was broken off is
            # closed by the event loop. What ended the block goes on.
            pass


def checked(name: str, n: SupportsIndex) -> int:
    count = read_count(name, n)
    if count < 1:
        raise ValueError(f"{name}: expected at least 1 thread, got {brief(count)}")
    return min(count, MOST_OF_ALL)


def _forget() -> None:
    global _cpus
    _cpus = None
    # Whether multiprocessing has begun this child is known later. Its siblings have the other processors either way.
    note_default_threads(_process or 1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # a child may be given other processors

if "TILECORE_NUM_THREADS" in os.environ:
    try:
        _process = _environment = checked(
            "environment variable TILECORE_NUM_THREADS", int(os.environ["TILECORE_NUM_THREADS"])
        )
    except ValueError:
        raise ValueError(
            "environment variable TILECORE_NUM_THREADS: expected an integer of at least 1, "
            f"got {os.environ['TILECORE_NUM_THREADS']!r}"
        ) from None
