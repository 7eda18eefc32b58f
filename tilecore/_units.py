"""Sizes and times as text for people."""

PREFIXES = {"E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def with_unit(value: float, unit: str) -> str:
    """The value in three digits, with a prefix of the unit.

    >>> with_unit(0.0123, "s"), with_unit(72, "B"), with_unit(999_999, "B"), with_unit(2.4e11, "B"), with_unit(0, "B")
    ('12.3 ms', '72 B', '1 MB', '240 GB', '0 B')
    """
    if value == 0:
        return f"0 {unit}"
    for prefix, factor in PREFIXES.items():
        if value >= 0.9995 * factor:
            break
    return f"{value / factor:.3g} {prefix}{unit}"


def with_binary_unit(count: int) -> str:
    """Bytes in four digits, with a binary unit.

    >>> with_binary_unit(3 << 29)
    '1.5 GiB'
    """
    power = min((count.bit_length() or 1) - 1, 60) // 10
    unit = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[power]
    return f"{count / (1 << 10 * power):.4g} {unit}"
