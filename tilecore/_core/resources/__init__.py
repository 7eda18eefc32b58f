"""Memory and processors: what may be used, and what is kept."""

# For programs that freeze others: they see no imports of compiled modules, and nothing else imports this one.
# mypy: disable-error-code=attr-defined
from tilecore._core.resources import process_state
