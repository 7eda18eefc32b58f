"""Both sides of bounds that were found by timing, on this host: what it would choose here, in ten minutes.

    python benchmarks/tunables.py [NAME ...]

Builds the sources as they are, and twice for each bound: with this one lower, and with this one higher, because bounds
change each other's times. Each bound has calls of its own. Processes of its three builds take turns, and each call's
ratio is the median over the rounds.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import fmean, median

import numpy as np
from tables import table

ROOT = Path(__file__).resolve().parent.parent
ROUNDS, CLEAR = 5, 1.03
ROWS = [((n, 4), (1, 3), "f4") for n in (30, 60, 120)] + [((n, 1), (1, 3), "u1") for n in (60, 200, 600)]
LONG = [((1, n * 12_500), (20, 1), "f4") for n in (1, 2, 3, 4, 6)]  # MB
LARGE = [((1, n * 12_500), (20, 1), "f4") for n in (10, 16, 24, 40)]
ORDERS = [((300, 400), (1, 2), "f8"), ((1000, 1200), (2, 1), "f4"), ((200, 100, 3), (1, 2, 1), "u1")]
SQUARES = [((1024, n), (2, 1), "f8") for n in (300, 1000)] + [((512, 3000), (1, 2), "c16")]
SHORT = [((n, n), (2, 2), "i2") for n in (2100, 2900)]
AT_64_KIB, GRAY = [((20_000,), (1,), "f4"), ((100, 200), (2, 1), "f4")], [((n, 1), (1, 3), "u1") for n in (300, 1000)]
REGIONS = [((500, 500), (n, 2), "f4") for n in (2, 4, 8, 12)] + [((500_000,), (n,), "f4") for n in (2, 3, 4, 8)]
USES = [np.sum, lambda y: np.add(y, 1, out=y), lambda y: y.ravel()[::4].sum(), np.copy]
# Bound: its file, a lower and a higher value, the calls, and whether other work is between them; "use": it is timed
# too, with each of USES.
BOUNDS = {
    "TILECORE_BLOCK_BYTES": ("config.h", "8192", "32768", LONG, False),
    "TILECORE_NOGIL_BYTES": ("config.h", "32768", "131072", AT_64_KIB, False),
    "TILECORE_THREAD_BYTES": ("config.h", "((ptrdiff_t)1 << 19)", "((ptrdiff_t)4 << 20)", LONG[:4], True),
    "TILECORE_MOVSB_BYTES": ("kernels/kernels.c", "4096", "16384", LARGE, "use"),
    "TILECORE_STREAM_BYTES": ("config.h", "(TILECORE_LAST_CACHE_BYTES / 4)", "(1 << 26)", LARGE, "use"),
    "TILECORE_HOT_NANOSECONDS": ("runtime/learn_stores.c", "50000", "800000", LARGE, False),
    "TILECORE_CHUNK_BYTES": ("runtime/workers.h", "((ptrdiff_t)64 << 10)", "((ptrdiff_t)256 << 10)", LONG, False),
    "TILECORE_FEW_COST": ("kernels/kernels.c", "320", "1280", ROWS, False),
    "TILECORE_EXPAND_ROWS": ("kernels/isa/short_rows.h", "24", "96", GRAY, False),
    "MIN_BANDED_BYTES": ("write/tiling.pyx", "(1 << 20)", "(1 << 30)", REGIONS, False),
    "SIDE_BYTES": ("write/panels.pyx", "256", "1024", ORDERS, False),
    "PANEL_BYTES": ("write/panels.pyx", "131072", "524288", ORDERS, False),
    "MIN_SQUARE_BYTES": ("write/panels.pyx", "32768", "131072", SQUARES, False),
    "STREAMED_ROWS_BYTES": ("write/panels.pyx", "262144", "1048576", SHORT, False),
    "MIN_ITEMS": ("write/panels.pyx", "1024", "16384", [((n, n), (1, 1), "f8") for n in (40, 80, 160)], False),
}  # fmt: skip


def compile_in(folder: Path, what: str) -> Path:
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{what} does not build:\n{done.stdout}")
    return folder


def build(base: Path, bound: tuple[str, int]) -> Path:
    """The sources with the lower value (1) or the higher one (2) of a bound: a copy of `base`, which is compiled."""
    (name, side), copy = bound, base.with_name("-".join(map(str, bound)))
    shutil.copytree(base, copy)
    path = copy / "tilecore" / "_core" / BOUNDS[name][0]
    value = rf"(\b{name}\b(?: =|\(l3, n\))? )\S.*?(?=,? *(?:/\*|#|\n))"
    text, count = re.subn(value, rf"\g<1>{BOUNDS[name][side]}", path.read_text(), count=1)
    if not count:
        raise SystemExit(f"{path}: no {name}; correct its place in tunables.py")
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before, before))  # else a header's change builds all modules anew
    core = copy / "tilecore" / "_core"
    for module in (*core.glob("write/*.pyx"), core / "resources" / "processor.pyx"):  # all bounds act there
        module.touch()
    return compile_in(copy, f"{name} as {BOUNDS[name][side]}")


def work(name: str) -> None:
    """In a process of one build: prints the median seconds of each of the bound's calls."""
    import tilecore  # of this build

    file, _, _, calls, others = BOUNDS[name]
    found = []
    for (shape, reps, dtype), use in product(calls, USES if others == "use" else [lambda y: None]):
        x = np.ones(shape, dtype, order="F" if file.endswith("panels.pyx") else "C")
        start = tuple(n // 2 for n in shape)
        stop = tuple(n // 2 + n * r for n, r in zip(shape, reps, strict=True))
        times, end = [], time.perf_counter() + 0.15
        while len(times) < 20 or time.perf_counter() < end:
            begin = time.perf_counter()
            y = tilecore.tile(x, reps) if calls is not REGIONS else tilecore.tile_region(x, None, start, stop)
            use(y)
            times.append(time.perf_counter() - begin)
            if others:
                part = y.ravel()[:1_000_000] * 2
                del part
            del y
        found.append(median(times[5:]))
    print(json.dumps(found))


def main(names: list[str]) -> None:
    if names[:1] == ["--work"]:
        return work(names[1])
    names = names or list(BOUNDS)
    rounds = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        base = Path(folder, "base")
        shutil.copytree(ROOT, base, ignore=shutil.ignore_patterns(".*", "build", "*.so", "tests", "docs"))
        compile_in(base, "the source")
        sides = [*product(names, (1, 2))]
        builds = dict(zip(sides, pool.map(partial(build, base), sides), strict=True))
        for _, name in product(range(ROUNDS), names):
            command = [sys.executable, __file__, "--work", name]
            paths = [base, builds[name, 1], builds[name, 2]]
            runs = [subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(path)}) for path in paths]
            rounds[name].append([json.loads(run) for run in runs])
    rows = []
    for name, turns in rounds.items():
        calls = range(len(turns[0][0]))
        found = [[[turn[side][k] / turn[0][k] for turn in turns] for k in calls] for side in (1, 2)]
        ratios = [exp(fmean(log(median(ratios)) for ratios in of_side)) for of_side in found]
        best = ratios.index(min(ratios)) + 1
        choice = BOUNDS[name][best] if ratios[best - 1] * CLEAR < 1 else "as it is"
        rows.append([name, *(f"{BOUNDS[name][side]}: {ratios[side - 1]:.2f}" for side in (1, 2)), choice])
    print(table(["bound", "lower: time ÷ today's", "higher", "choose"], rows))


if __name__ == "__main__":
    main(sys.argv[1:])
