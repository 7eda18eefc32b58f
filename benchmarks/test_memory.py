"""What each way to get a large tiling costs: the time to get it, to read and to write all of it, and memory.

Every way does the same tiling: a block of 1 MiB, repeated to 256 MiB, with --full to 1 GiB.

    tilecore first       the first call: no memory of an earlier result is kept
    tilecore             a later call, after the earlier result was dropped
    tilecore in parts    regions of 1 MiB, one after the other into one buffer, each read at once
"""

import time
from functools import partial
from pathlib import Path
from unittest import SkipTest

import numpy as np
import peers
from workloads import Workload, verify

import tilecore

MIB = 2**20
WITHOUT = {  # by kind
    **{"get": ["tilecore in parts"], "write": ["tilecore in parts", "tilecore view"]},
    "peak": ["tilecore"],  # the memory that it reuses is counted as the process' before
}
CASE_SECONDS = dict.fromkeys(("get", "read", "write", "memory", "peak"), 1)


def in_parts(x, reps):
    """Makes no result."""
    part = np.ones(x.shape, x.dtype)

    def call():
        for row in range(reps[0]):
            tilecore.tile_region(x, reps, (row, 0), (row + 1, x.size), part)
            part.max()

    return call


CASES = {
    **{"numpy": peers.numpy, "tilecore first": peers.tilecore, "tilecore": peers.tilecore},
    **{"tilecore out": peers.tilecore_out, "tilecore in parts": in_parts},
    "tilecore mapped": lambda x, reps: partial(tilecore.tile_mapped, x, reps),
    "tilecore view": lambda x, reps: partial(tilecore.tile_view, x[:, :1], (reps[0], x.size)),
    "onnxruntime": peers.onnxruntime,
}


def choose(kind, full):
    mib = 1024 if full else 256
    workload = Workload(f"1 MiB to {mib} MiB", (1, MIB // 4), (mib, 1), "f4")
    return [(workload, case) for case in CASES if case not in WITHOUT.get(kind, ())]


def footprint():
    """This process' share of memory in bytes; a page that it maps several times counts once."""
    file = Path("/proc/self/smaps_rollup")
    if not file.exists():
        raise SkipTest(f"no {file}")
    return 1024 * int(file.read_text().partition("\nPss:")[2].split()[0])


class Step:
    """One of what is done with a result; each time with a new one."""

    def __init__(self, kind, call, drop, nbytes):
        self.kind, self.call, self.drop, self.nbytes = kind, call, drop, nbytes

    def sample(self):
        """Seconds; of the kinds "memory" and "peak" bytes, in whole MiB and at least one."""
        self.drop()
        in_bytes = self.kind in ("memory", "peak")
        before = footprint() if in_bytes else 0
        begin = time.perf_counter()
        result = self.call()
        if self.kind != "get" and result is not None:
            begin = time.perf_counter()
            result.fill(2) if self.kind == "write" else np.asarray(result).max()
        seconds = time.perf_counter() - begin
        if self.kind == "peak":
            del result
            result = np.ones(self.nbytes, "u1")
        return max(1, round((footprint() - before) / MIB)) * MIB if in_bytes else seconds


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    call = CASES[case](x, reps)
    result = call()
    if case == "tilecore view":
        assert result.shape == workload.output_shape and result.strides[1] == 0
    elif result is not None:
        verify(result, x, reps)

    def drop():
        """Make and drop a result; its memory stays idle for "tilecore", and otherwise goes back to the system."""
        tilecore.tile(x, reps)
        if case != "tilecore":
            tilecore.release_memory()

    return Step(kind, call, drop, workload.nbytes)


def test_get(record):
    """The call."""


def test_read(record):
    """All of the result; in parts, with the calls."""


def test_write(record):
    """All of the result."""


def test_memory(record):
    """Bytes that the process has more, once the result was read."""


def test_peak(record):
    """The same, once the result was dropped and another array of its size was made."""
