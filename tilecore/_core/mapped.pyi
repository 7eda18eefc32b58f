from typing import final

@final
class Mapping:
    """The base of a mapped result: its addresses, which go with the last view."""

def mapping_limits() -> dict[str, int | bool]:
    """What this system allows: for `show_config`."""
