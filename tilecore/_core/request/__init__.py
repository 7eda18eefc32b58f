"""Reads and checks the arguments of a call."""

# Otherwise compiled modules alone import these, and programs that freeze others do not see it.
# mypy: disable-error-code=attr-defined
import pkgutil

from tilecore._core.request import arguments, overlaps
