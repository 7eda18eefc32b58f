"""From a plan to bytes."""

# Otherwise compiled modules alone import these, and programs that freeze others do not see it.
# mypy: disable-error-code=attr-defined
from tilecore._core.plan import nest, plan
from tilecore._core.write import blocks, mapped, panels, references, results, stores, tiling
