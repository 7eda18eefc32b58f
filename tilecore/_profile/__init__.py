"""`tilecore.profile`, which measures the calls of `numpy.tile` in a block. It imports what it needs when called."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilecore._profile.block import ProfileBlock


def profile() -> "ProfileBlock":
    """Measure a block's calls of `numpy.tile`, and show what tilecore would save there.

    >>> import numpy, tilecore
    >>> with tilecore.profile() as table:
    ...     rows = numpy.tile(numpy.arange(3), (1000, 1))   # from (3,) to (1000, 3): NumPy's own result
    >>> table["sites"][0]["bytes"]                          # the table is printed too, on standard error
    24000

    The table lists each place that calls `numpy.tile`: NumPy's time, tilecore's, calls, size of the results, the most
    frequent input, and a hint. As data it is a dict, filled at the end of the block. The documentation's page "Your own
    program" lists its keys, and explains how they are measured. ``tilecore profile script.py`` measures a program.

    Calls by any name are measured, also by one bound earlier (``from numpy import tile``); child processes are not.

    Source: NumPy 2, `numpy.tile`.
    """
    from tilecore._profile.measure import Profile

    return Profile().block()
