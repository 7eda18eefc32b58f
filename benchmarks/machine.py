"""What a report says about the machine it was made on: processor, memory, versions."""

import os
import platform
from importlib import metadata
from pathlib import Path

PACKAGES = ("tilecore", "numpy", "einops", "torch", "onnxruntime", "openvino", "jax", "tensorflow", "numexpr", "dask")
PACKAGES += ("opencv-python-headless", "tensorflow_cpu")
PACKAGES += ("pytest-benchmark",)
LOADED = 5  # per cent of the processors' time that others may take before the report warns


def describe() -> dict[str, str]:
    import cpuinfo  # a report of times from elsewhere needs neither

    import tilecore

    # The first one of a name is imported.
    installed = {package.name: package.version for package in reversed(list(metadata.distributions()))}
    about = {
        "processor": cpuinfo.get_cpu_info().get("brand_raw", platform.machine()),
        "CPUs usable": f"{usable_cpus()} of {os.cpu_count()}",
        "memory": _memory(),
        "caches": _caches(),
        "huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "system": platform.platform(),
        "Python": f"{platform.python_version()}, built by {platform.python_compiler()}",
        "versions": ", ".join(f"{name} {installed[name]}" for name in PACKAGES if name in installed),
    }
    config = tilecore.show_config(mode="dicts")
    for part in ("Build", "Kernels", "Threads"):
        known = (f"{what} {it}" for what, it in config[part].items() if what != "include")
        about[f"tilecore, {part.lower()}"] = ", ".join(known)
    return {what: said for what, said in about.items() if said}


class Elsewhere:
    """How busy other processes, not this one and its children, keep the processors."""

    NAME = "other processes"

    def __init__(self) -> None:
        self.begin = self._seconds()

    def share(self) -> str:
        """Of the processors' time since the object was made; empty if it is not known."""
        before, now = self.begin, self._seconds()
        if before is None or now is None or now[0] <= before[0]:
            return ""
        passed, busy, own = (b - a for a, b in zip(before, now, strict=True))
        return f"{max(0.0, busy - own) / passed:.0%} of the processors' time"

    @staticmethod
    def _seconds() -> tuple[float, float, float] | None:
        """Seconds of the processors: all, busy or stolen, and this process' own."""
        fields = _read("/proc/stat").partition("\n")[0].split()[1:9]
        if len(fields) < 8:
            return None
        ticks = [int(field) / os.sysconf("SC_CLK_TCK") for field in fields]
        idle = ticks[3] + ticks[4]
        return sum(ticks), sum(ticks) - idle, sum(os.times()[:4])


# Where a report was made, in this order; what else a file holds is not printed.
SHOWN = ("commit", "memory", "caches", Elsewhere.NAME, "huge pages", "system", "Python", "versions")
SHOWN += ("tilecore, build", "tilecore, kernels", "tilecore, threads")


def others_share(machine: dict[str, str]) -> int:
    """What other processes took of the processors' time, in per cent."""
    return int(machine.get(Elsewhere.NAME, "0%").partition("%")[0])


def head(machine: dict[str, str]) -> str:
    """The release and the host, in a line."""
    release, cpus = machine.get("versions", "").partition(",")[0], machine.get("CPUs usable", "")
    parts = [release, machine.get("processor", ""), cpus and f"CPUs: {cpus}", machine.get("date", "")]
    return ", ".join(filter(None, parts))


def warn(machine: dict[str, str]) -> str:
    if others_share(machine) <= LOADED:
        return ""
    return f"Made on a loaded machine: other processes took {machine[Elsewhere.NAME]}. Do not rely on times and ratios."


def as_list(machine: dict[str, str]) -> str:
    paragraphs = [f"**{warn(machine)}**\n\n" * bool(warn(machine)), f"{head(machine)}\n\n" * bool(head(machine))]
    return "".join([*paragraphs, *(f"- {what}: {machine[what]}\n" for what in SHOWN if what in machine)])


def usable_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (AttributeError, ValueError, OSError):
        return ""


def _caches() -> str:
    sizes = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(folder / name) for name in ("level", "type", "size"))
        sizes.append(f"L{level} {kind.lower()} {size}")
    return ", ".join(sizes)


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
