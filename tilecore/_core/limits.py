"""What this process may use: memory and processors, the machine's or its control group's."""

import os
import re
import sys


def parse_bytes(text: str) -> int:
    """A count of bytes as people write it: '1048576', '256M', '4G' (binary K, M, G, T).

    >>> parse_bytes("256M")
    268435456
    """
    match = re.fullmatch(r"\s*(\d+)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE | re.ASCII)
    if not match:
        raise ValueError(f"expected a number of bytes such as 1048576, 256M or 4G, got {text!r}")
    return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def bytes_from_environment(name: str) -> int | None:
    """What the environment variable `name` says, or None where it is not set. No more than an
    address can reach, which is as good as no limit."""
    try:
        return min(parse_bytes(os.environ[name]), sys.maxsize)
    except KeyError:
        return None
    except ValueError as error:
        raise ValueError(f"environment variable {name}: {error}") from None


def physical_memory() -> int:
    """Bytes of memory: the machine's, or the control group's where lower."""
    limits = [sys.maxsize]
    try:
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        pass
    for text in control_files("memory.max", "memory", "memory.limit_in_bytes"):
        if text[0].isdigit():  # else "max"
            limits.append(int(text[0]))
    return min(limit for limit in limits if limit > 0)


def available_cpus() -> int:
    """Processors: those of the affinity mask, or as many as the control group's quota pays for."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        count = os.cpu_count() or 1
    quotas = [
        (int(quota), int(period))
        for quota, period in control_files(
            "cpu.max", "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"
        )
        if quota.isdigit() and int(period) > 0  # else "max", or -1 in version 1
    ]
    return max(1, min([count, *(-(-quota // period) for quota, period in quotas)]))


_is_child: bool | None = None  # of multiprocessing; None until somebody has asked


def in_multiprocessing_child() -> bool:
    """Whether this process is one of several that share the machine's processors and memory."""
    # Decided once: without the GIL a fork() may find `sys.modules` locked by another thread that asks, and
    # nobody unlocks it in the child.
    global _is_child
    if _is_child is None:
        _is_child = _looks_like_a_child()
    return _is_child


def _looks_like_a_child() -> bool:
    process = sys.modules.get("multiprocessing.process")
    try:
        if process is None:
            return False
        # A spawned child imports the main module before it has a parent process.
        inherits = getattr(process.current_process(), "_inheriting", False)
        return bool(inherits) or process.parent_process() is not None
    except (
        AttributeError,
        NameError,
    ):  # another thread is importing it, so nobody has begun a child
        return False


def _forget() -> None:
    global _is_child
    _is_child = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # before multiprocessing says whose child it is


def control_files(unified: str, controller: str, *legacy: str) -> list[list[str]]:
    """The words in a control file, for this process' control group and every group above it.

    Version 2 has one file with all the words, version 1 one file (`legacy`) for each of them.
    """
    found = []
    for line in filter(None, read_text("/proc/self/cgroup").split("\n")):  # names may hold blanks
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, names = "/sys/fs/cgroup", [unified]
        elif controller in controllers.split(","):
            root, names = f"/sys/fs/cgroup/{controller}", list(legacy)
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
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:  # not Linux, or no such control group
        return ""
