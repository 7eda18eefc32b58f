"""What tilecore does and how long it takes, shown on the machine at hand: `tilecore demo`."""

import platform
from collections.abc import Callable
from functools import partial
from statistics import median
from textwrap import fill
from time import perf_counter
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

import tilecore
from tilecore import directml, onnx, openvino
from tilecore._cli.units import with_unit

# ---------------------------------------------------------------- what goes in and comes out

# What is printed is what runs.
EXAMPLES = {
    "NumPy: the shorter of shape and repeats gets 1s in front": "tilecore.tile(x, (2, 2))",
    "ONNX Tile-13, the newest: one repeat for each axis": "onnx.tile(x, [1, 2])",
    "ONNX Tile-6, as a model of opset 11 means it": "onnx.for_opset(11)(x, [2, 1])",
    "ONNX Tile-1: one axis is repeated": "onnx.tile_1(x, 3, axis=0)",
    "OpenVINO Tile-1: the shorter gets 1s in front here too": "openvino.tile(x, [2, 1, 1])",
    "DirectML: repeats of 1 or more, sizes of 32 bits": "directml.tile(x, [1, 3])",
}

MISTAKES = {
    "a negative repeat": "tilecore.tile(x, (2, -1))",
    "a fraction": "tilecore.tile(x, 1.5)",
    "not one repeat for each axis": "onnx.tile(x, [2])",
    "a data type that is not the dialect's": "directml.tile(x.astype('float64'), [1, 2])",
    "too large": "tilecore.tile(x, (10**6, 10**9))",
}


MARGIN = 4 * " "


def show_examples(x: NDArray[Any]) -> None:
    names = {"tilecore": tilecore, "onnx": onnx, "openvino": openvino, "directml": directml, "x": x}
    print(f"Tile repeats a whole array along its axes. Here is x, {described(x)}:\n")
    print(indented(x))
    for title, call in EXAMPLES.items():
        result = eval(call, dict(names))
        print(f"\n{title}\n\n    >>> {call}    # {described(result)}\n{indented(result)}")
    print("\nErrors come before anything is allocated, and say what was asked for.")
    for title, call in MISTAKES.items():
        try:
            eval(call, dict(names))
        except (TypeError, ValueError, MemoryError) as error:
            print(f"\n{title}\n\n    >>> {call}")
            message = f"{type(error).__name__}: {error}"
            print(fill(message, 92, initial_indent=MARGIN, subsequent_indent=2 * MARGIN))


def described(x: NDArray[Any]) -> str:
    return f"shape {x.shape}, {x.dtype}"


def indented(x: NDArray[Any]) -> str:
    return "\n".join(MARGIN + line for line in str(x).splitlines() if line)


# ---------------------------------------------------------------- how long it takes


class Workload(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: str
    reps: tuple[int, ...]


WORKLOADS = [
    Workload("tiny matrix", (2, 3), "float32", (2, 2)),
    Workload("gray to RGB", (512, 512, 1), "uint8", (1, 1, 3)),
    Workload("table rows", (200_000, 3), "float32", (1, 4)),
    Workload("image batch", (1, 224, 224, 3), "uint8", (32, 1, 1, 1)),
    Workload("attention heads", (2, 8, 1, 512, 64), "float16", (1, 1, 4, 1, 1)),
    Workload("attention mask", (1, 1, 512, 512), "float32", (4, 8, 1, 1)),
]

SECONDS = 0.6  # for each workload
SAMPLE_SECONDS = 0.002  # shorter calls are timed many at once


def show_times() -> None:
    print(
        f"{'':17}{'input':16}{'repeats':12}{'output':>9}{'tilecore':>10}{'numpy':>10}{'ratio':>9}"
    )
    for name, shape, dtype, reps in WORKLOADS:
        x = numpy.resize(numpy.arange(251), shape).astype(dtype)
        nbytes = verify(tilecore.tile(x, reps), x, reps)
        ours, theirs, ratio = compare(partial(tilecore.tile, x, reps), partial(numpy.tile, x, reps))
        print(
            f"{name:17}{text(shape):16}{text(reps):12}{with_unit(nbytes, 'B'):>9}"
            f"{with_unit(ours, 's'):>10}{with_unit(theirs, 's'):>10}{ratio:8.1f}x"
        )


def verify(result: NDArray[Any], x: NDArray[Any], reps: tuple[int, ...]) -> int:
    """Check every element by index arithmetic; the result's size in bytes."""
    index = numpy.ix_(*(numpy.arange(n * r) % n for n, r in zip(x.shape, reps, strict=True)))
    if result.dtype != x.dtype or not numpy.array_equal(result, x[index]):
        raise ValueError(f"wrong result for shape {x.shape}, repeats {reps}")
    return result.nbytes


def compare(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float, float]:
    """Median seconds of both, and the median of theirs / ours over pairs that ran side by side."""
    count = 1
    while (seconds := timed(theirs, count)) < SAMPLE_SECONDS:
        count = max(2 * count, int(count * SAMPLE_SECONDS / max(seconds, 1e-9)))
    pairs: list[tuple[float, float]] = []
    end = perf_counter() + SECONDS
    while len(pairs) < 6 or perf_counter() < end:
        if len(pairs) % 2:
            pairs.append((timed(ours, count), timed(theirs, count)))
        else:
            pairs.append((timed(theirs, count), timed(ours, count))[::-1])
    return (
        median(a for a, _ in pairs) / count,
        median(b for _, b in pairs) / count,
        median(b / a for a, b in pairs),
    )


def timed(call: Callable[[], Any], count: int) -> float:
    begin = perf_counter()
    for _ in range(count):
        call()
    return perf_counter() - begin


def text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def demo() -> None:
    versions = f"NumPy {numpy.__version__}, Python {platform.python_version()}"
    print(f"tilecore {tilecore.__version__}, {versions}, {tilecore.get_num_threads()} threads\n")
    show_examples(numpy.array([[1, 2, 3], [4, 5, 6]], "float32"))
    print(
        "\nMedian times on this machine, each result verified first. The ratio, numpy's time over\n"
        "tilecore's, is the median over pairs of calls that ran side by side.\n"
    )
    show_times()
