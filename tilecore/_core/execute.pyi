def instruction_sets() -> dict[str, str]:
    """By name: the best one that the processor has, and the one whose kernels are used."""

def build() -> dict[str, str]:
    """What this module was compiled with."""

def note_default_threads(n: int) -> None:
    """Let C callers who do not say a number of threads have this one."""
