# cython: binding=False, annotation_typing=False
"""The memory and the processors of the machine, or the lower limits of this process' control group."""

import os
import sys

from libc.stdio cimport FILE, fclose, fopen, fread


def physical_memory():
    """The machine's memory in bytes, or the limit of the control group or of a 32-bit process if that is lower.

    `memory.high` is a limit too: above it, Linux lets the group wait, and takes its pages away.
    """
    unified = [control_files(name, "memory", "memory.limit_in_bytes") for name in ("memory.max", "memory.high")]
    limits = [sys.maxsize, *(int(text[0]) for files in unified for text in files if is_number(text[0]))]  # else "max"
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):  # Windows has no sysconf
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limit for limit in limits if limit > 0)


def cpu_quota():
    """The control group's quota in processors, rounded up."""
    quotas = [
        (int(quota), int(period))
        for quota, period in control_files("cpu.max", "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")
        if is_number(quota) and is_number(period) and int(period)  # else "max", or -1 in version 1
    ]
    return max(1, min([-(-quota // period) for quota, period in quotas], default=sys.maxsize))


def control_files(unified, controller, *legacy):
    """The words of a control file: a list for this process' control group, and one for every group above it.

    Version 2 has one file with all words; version 1 has one file (`legacy`) for each word.
    """
    found = []
    for line in read_text("/proc/self/cgroup").split("\n"):  # paths may contain spaces
        number, _, line = line.partition(":")
        controllers, _, path = line.partition(":")
        if number == "0":
            roots, names = ["/sys/fs/cgroup"], [unified]
        elif controller in controllers.split(","):
            # A folder of several controllers, such as "cpu,cpuacct", need not have a link for each.
            roots, names = [f"/sys/fs/cgroup/{name}" for name in (controller, controllers)], [*legacy]
        else:
            continue
        groups = [part for part in path.split("/") if part]
        for folder in ["/".join([root, *groups[:depth]]) for root in roots for depth in range(len(groups) + 1)]:
            words = [word for name in names for word in read_text(f"{folder}/{name}").split()]
            if len(words) >= len(legacy):
                found.append(words[:len(legacy)])
    return found


def read_text(path):
    """The first 8 KiB of a file, or "" if it cannot be read. By C, because programs replace `open` and `os.open`."""
    cdef char buffer[8192]
    cdef FILE *file = fopen(path.encode(errors="surrogateescape"), "rb")
    if file == NULL:
        return ""
    cdef size_t size = fread(buffer, 1, sizeof(buffer), file)
    fclose(file)
    return buffer[:size].decode(errors="surrogateescape")


def is_number(text):
    return text.isascii() and text.isdigit() and len(text) < 20
