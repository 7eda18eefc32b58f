"""Memory and processors of the machine, or fewer by this process' control group."""

import os
import sys
from contextlib import suppress


def physical_memory() -> int:
    """The machine's memory in bytes, or the limit of the control group or of a 32-bit process if that is lower."""
    files = control_files("memory.max", "memory", "memory.limit_in_bytes")
    limits = [sys.maxsize, *(int(text[0]) for text in files if text[0].isdigit())]  # else "max"
    with suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limit for limit in limits if limit > 0)


def cpu_quota() -> int:
    """The control group's quota in processors, rounded up."""
    quotas = [
        (int(quota), int(period))
        for quota, period in control_files("cpu.max", "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        if quota.isdigit() and int(period) > 0  # else "max", or -1 in version 1
    ]
    return max(1, min([-(-quota // period) for quota, period in quotas], default=sys.maxsize))


def control_files(unified: str, controller: str, *legacy: str) -> list[list[str]]:
    """The words of a control file: a list for this process' control group, and one for every group above it.

    Version 2 has one file with all words. Version 1 has one file (`legacy`) for each word.
    """
    found = []
    for line in filter(None, read_text("/proc/self/cgroup").split("\n")):  # paths may contain spaces
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = "/sys/fs/cgroup", [unified]
        elif controller in controllers.split(","):
            root, names = f"/sys/fs/cgroup/{controller}", [*legacy]
        else:
            continue
        groups = [part for part in path.split("/") if part]
        for depth in range(len(groups) + 1):
            folder = "/".join([root, *groups[:depth]])
            words = [word for name in names for word in read_text(f"{folder}/{name}").split()]
            if len(words) >= len(legacy):
                found.append(words)
    return found


def read_text(path: str) -> str:
    """The text of a file, or "" if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:  # only Linux has these files
        if error.errno is None:  # a signal handler has raised it
            raise
        return ""
