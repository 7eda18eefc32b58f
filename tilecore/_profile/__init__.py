"""`profile`, which measures the calls of `numpy.tile` in a block. What it needs is imported when it is called."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def profile() -> Iterator[None]:
    """Measure a block's calls of `numpy.tile`, and show what tilecore would save there.

    >>> import numpy, tilecore
    >>> with tilecore.profile():                            # the table is printed here, on standard error
    ...     rows = numpy.tile(numpy.arange(3), (1000, 1))   # the block's results are NumPy's own

    The table lists each place that calls `numpy.tile`: NumPy's time, tilecore's, calls, size of the results, the most
    frequent input, and a hint. It is printed after an exception too. The calls of all threads are measured, those of
    child processes are not. Of nested blocks, each shows its calls, and those of the blocks in it.

    The block takes longer: some calls are made by both functions, for up to a second plus a tenth of the block's time.
    ``tilecore profile script.py`` measures a whole program.

    Notes
    -----
    It replaces `numpy.tile` for the time of the block. Names bound earlier, as by ``from numpy import tile``, are not
    measured.

    Source: NumPy 2, `numpy.tile`.
    """
    from tilecore._profile.measure import Profile

    measured = Profile()
    try:
        measured.start()  # a signal handler may raise in its midst
        yield
    finally:
        measured.end(sys.stderr)
