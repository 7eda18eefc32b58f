"""Calls of tilecore beside plain loops in C that write the same bytes (loops.c): what share of the limit is reached.

The limit is the fastest of the loops, for the same result, source, and work between the calls: by one thread for calls
with threads=1, else by one or two. Its time is taken within C. The source is in the caches, unless it is removed from
them before each call. In a loop the memory of the result is in them too, as far as they hold it; between other work,
NumPy makes arrays as large as the result meanwhile, at most OTHER_BYTES.
"""

import ctypes
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial
from itertools import product
from math import isqrt
from statistics import median

import numpy as np
from kernels import compile_c
from tables import size
from workloads import Workload, verify

import tilecore

BYTES = (2**16, 2**19, 4_400_000, 13_000_000, 31_000_000, 100_000_000, 400_000_000)
KINDS = ("long rows", "short rows", "transposed")
STATES = [f"{source}, {program}" for source in ("hot", "cold") for program in ("in a loop", "between other work")]
OURS = ["tilecore", "tilecore 1 thread"]
CASES = ["limit", "limit 1 thread", *OURS, *(f"{case}, another thread" for case in OURS)]
OTHER_BYTES = 2**25
SETTLING, CALLS, SECONDS = 20, 15, 0.1  # calls before the first sample, and in one, unless they take so long
CASE_SECONDS = {"limit": 1.0}


class Work(ctypes.Structure):
    """The one in loops.c."""

    _fields_ = [("dst", ctypes.c_void_p), ("src", ctypes.c_void_p)]
    _fields_ += [(name, ctypes.c_ssize_t) for name in ("bytes", "repeats", "rows", "columns")]


@cache
def library():
    with tempfile.TemporaryDirectory() as folder:
        loaded = ctypes.CDLL(str(compile_c(folder, "loops", "-march=native", "-pthread")))
    loaded.loop_kind.restype, loaded.run_loop.restype = ctypes.c_char_p, ctypes.c_longlong
    loaded.flush.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t]
    return loaded


def make_workload(kind, nbytes, state):
    side = isqrt(nbytes // 16) // 8 * 8
    shape, reps = {
        "long rows": ((1, nbytes // 128), (16, 1)),
        "short rows": ((nbytes // 256, 1), (1, 32)),
        "transposed": ((side, side), (2, 1)),
    }[kind]
    return Workload(f"{kind}: {size(nbytes)}, {state}", shape, reps, "f8")


@lru_cache(maxsize=1)
def arrays(workload):
    """The source, and an array for the loops' results in memory like that of tilecore's."""
    x = workload.input()
    if workload.name.startswith("transposed"):
        x = np.asfortranarray(x)
    return x, tilecore.tile(x, workload.reps)


class Settled:
    """A call that returns its seconds, at its pace after some calls."""

    def __init__(self, call, x, workload, in_thread=False):
        state = workload.name.partition(", ")[2]
        self.call, self.pool = call, ThreadPoolExecutor(1) if in_thread else None
        self.flush = partial(library().flush, x.ctypes.data, x.nbytes) if state.startswith("cold") else lambda: None
        self.others = state.endswith("other work")
        self.run(SETTLING)

    def run(self, calls):
        times, begin = [], time.perf_counter()
        while len(times) < calls and (len(times) < 5 or time.perf_counter() < begin + calls / CALLS * SECONDS):
            self.flush()
            seconds, y = self.call()
            times.append(seconds)
            if self.others:
                part = y.ravel(order="K")[: OTHER_BYTES // y.itemsize]
                twice = part * 2
                joined = np.concatenate([twice, part])
                del part, twice, joined
            del y
        return times

    def sample(self):
        times = self.pool.submit(self.run, CALLS).result() if self.pool else self.run(CALLS)
        return median(times[2:])


def loop_call(loop, threads, workload):
    x, out = arrays(workload)
    work = Work(out.ctypes.data, x.ctypes.data, x.nbytes, workload.reps[0], *x.shape[::-1])
    return lambda: (library().run_loop(loop, threads, ctypes.byref(work)) / 1e9, out)


@lru_cache(maxsize=2)
def find_limit(workload, counts):
    """The call of the fastest loop with one of these numbers of threads."""
    x, _ = arrays(workload)
    loops, kind = [], workload.name.partition(":")[0].encode()
    while name := library().loop_kind(len(loops)):
        loops.append(name)
    calls = [loop_call(k, n, workload) for k, name in enumerate(loops) if name == kind for n in counts]
    return min(calls, key=lambda call: Settled(call, x, workload).sample())


def choose(kind, full):
    workloads = [make_workload(*words) for words in product(KINDS, BYTES if full else BYTES[1::2], STATES)]
    return product(workloads, CASES)


def prepare(kind, workload, case):
    x, out = arrays(workload)
    threads = 1 if "1 thread" in case else None
    if case.startswith("limit"):
        call = find_limit(workload, (1,) if threads else (1, 2))
        out.fill(0)
    else:

        def call():
            begin = time.perf_counter()
            y = tilecore.tile(x, workload.reps, threads=threads)
            return time.perf_counter() - begin, y

    verify(call()[1], x, workload.reps)
    return Settled(call, x, workload, "another" in case)


def test_limit(record):
    """By the kind of rows, the size of the result, the state of the caches, the program, and the calling thread."""
