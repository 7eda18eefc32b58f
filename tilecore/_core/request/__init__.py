"""Reads and checks a request: the arguments of a call."""

# For programs that freeze others: they see no imports of compiled modules, which import most of these.
# mypy: disable-error-code=attr-defined
from tilecore._core.request import arguments, callers_code, masked, overlaps
