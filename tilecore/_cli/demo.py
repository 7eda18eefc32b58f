"""`tilecore demo`: shows what tilecore does, and times it on this machine. Benchmarks are in the repository."""

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median
from textwrap import indent
from timeit import timeit
from typing import Any

import numpy
from numpy.typing import NDArray

import tilecore
from tilecore._dialects.dialect import Dialect
from tilecore._process import choose_clock, describe_others, processor_seconds
from tilecore._units import with_unit

clock = choose_clock()
# Timed in loops that do nothing else.
TIMED: dict[str, tuple[tuple[int, ...], str, tuple[int, ...]]] = {
    "a few numbers": ((2, 3), "float32", (2, 2)),
    "gray to RGB": ((256, 256, 1), "uint8", (1, 1, 3)),
    "short rows": ((200_000, 3), "float32", (1, 5)),
    "one image to a batch": ((1, 64, 56, 56), "float32", (16, 1, 1, 1)),
    "a matrix, 8 by 8": ((512, 512), "float32", (8, 8)),
}
ROUNDS = 21
CALLS = 100  # in a round, for results that take microseconds


def demo(dialects: Mapping[str, Dialect]) -> None:
    versions = f"NumPy {numpy.__version__}, Python {platform.python_version()}"
    print(f"tilecore {tilecore.__version__}, {versions}, threads: {tilecore.get_num_threads()}\n")
    x = numpy.array([[1, 2, 3], [4, 5, 6]], "float32")
    print(f"Tile repeats a whole array along its axes. Here is x:\n\n{indent(str(x), ' ' * 4)}")
    show_example("NumPy: whole copies, side by side", "tilecore.tile", x, (2, 2))
    for name, dialect in dialects.items():
        what, repeats = dialect.example
        show_example(f"{dialect.version().name}: {what}", f"tilecore.{name}.tile", x, repeats)
    print("\nThe median time on a processor, and numpy.tile's relative to tilecore's. Each\nresult is verified first.")
    print(f"\n{'result':>36} {'tilecore':>10} {'numpy.tile':>10}")
    before = processor_seconds()
    for title, (shape, dtype, reps) in TIMED.items():
        x = numpy.resize(numpy.arange(251), shape).astype(dtype)
        result = tilecore.tile(x, reps)
        verify(result, x, reps)
        show_times(title, result.nbytes, partial(tilecore.tile, x, reps), partial(numpy.tile, x, reps))
    print("\nThe same, with a tiled mask and with broadcasting in the place of numpy.tile:\n")
    image, mask = numpy.full((480, 640, 3), 7, "uint8"), numpy.eye(480, 640, dtype="uint8")[..., None]
    if not numpy.array_equal(image * tilecore.tile(mask, (1, 1, 3)), image * mask):
        raise ValueError("wrong result for an image times a mask")
    show_times("image times a mask", image.nbytes, lambda: image * tilecore.tile(mask, (1, 1, 3)), lambda: image * mask)
    if others := describe_others(before):
        print(f"\n{others}")


def show_example(title: str, function: str, x: NDArray[Any], repeats: Sequence[int]) -> None:
    call = f"{function}(x, {repeats})"
    result = eval(call, {"tilecore": tilecore, "x": x})
    verify(result, x, tuple(max(repeat, 0) for repeat in repeats))
    print(f"\n{title}\n\n    >>> {call}    # shape {result.shape}\n{indent(str(result), ' ' * 4)}")


def verify(result: NDArray[Any], x: NDArray[Any], reps: tuple[int, ...]) -> None:
    """Check every element by index arithmetic. `reps` has one entry for each axis."""
    index = numpy.ix_(*(numpy.arange(n * r) % n for n, r in zip(x.shape, reps, strict=True)))
    if result.dtype != x.dtype or not numpy.array_equal(result, x[index]):
        raise ValueError(f"wrong result for shape {x.shape}, repeats {reps}")


def show_times(title: str, nbytes: int, first: Callable[[], object], second: Callable[[], object]) -> None:
    calls = CALLS if nbytes < 2**18 else 1
    ours, theirs = [], []
    for _ in range(ROUNDS):  # in turn, so that other processes slow down both
        ours.append(timeit(first, timer=clock, number=calls) / calls)
        theirs.append(timeit(second, timer=clock, number=calls) / calls)
    a, b = median(ours), median(theirs)
    times = f"{with_unit(a, 's'):>10} {with_unit(b, 's'):>10} {b / a:>6.1f}x"
    print(f"{title:<27} {with_unit(nbytes, 'B'):>8} {times}")
