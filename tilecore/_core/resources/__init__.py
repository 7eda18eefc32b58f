"""Memory and processors: what may be used, and what is kept."""

# Otherwise compiled modules alone import these, and programs that freeze others do not see it.
# mypy: disable-error-code=attr-defined
from tilecore._core.resources import machine, process_state
