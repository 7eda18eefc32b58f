"""Reads and checks a request: the arguments of a call."""

# Otherwise compiled modules alone import these, and programs that freeze others do not see it.
# mypy: disable-error-code=attr-defined
from tilecore._core.request import arguments, numpy_own, overlaps, subclasses
