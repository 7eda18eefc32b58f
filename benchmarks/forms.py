"""What callers write: each form of repeats over inputs of each size, and each kind of input, against
`numpy.tile`.

    python benchmarks/forms.py [--pairs 15] [--only 2048] [--forms tuple list] [--kinds]

A cell is the median of its cases, and the lowest: NumPy's time over tilecore's, higher: tilecore is
faster. Each case is the median over pairs of samples, one directly after the other. The cases are those
of the test suites of other projects: half of them repeat nothing, most are small, a few are large.
"""

import argparse
from statistics import median

import machine
import numpy as np
from tables import table
from timing import Call, in_turn

import tilecore

FORMS = {
    "tuple": tuple,
    "list": list,
    "int": lambda reps: reps[-1],
    "NumPy int": lambda reps: np.int64(reps[-1]),
    "integer array": np.array,
}

# (dtype, shape of the input, repeats), by the bytes of the input
# fmt: off
CASES = {
    "0 B": [("f8", (0,), (2,)), ("f8", (0,), (1,)), ("f8", (0, 3), (2, 2)), ("i4", (3, 0), (4, 1))],
    "to 1 KB": [
        ("f8", (), (3,)), ("f8", (), (1_000_001,)), ("f8", (1,), (1,)), ("i8", (3,), (2,)),
        ("f8", (10,), (5, 1)), ("f4", (2, 3), (2, 2)), ("f8", (4, 4), (1, 1)),
        ("u1", (4, 4, 1), (1, 1, 3)), ("f8", (1, 16), (64, 1)), ("f8", (50,), (100,)),
    ],
    "to 64 KB": [
        ("f8", (512,), (1,)), ("f8", (2048,), (120, 1)), ("f8", (64, 64), (1, 1)),
        ("f4", (1000,), (10,)), ("f4", (2000, 3), (1, 5)), ("u1", (64, 64, 1), (1, 1, 3)),
        ("f4", (32, 32), (2, 2)),
    ],
    "to 1 MB": [
        ("f8", (100_000,), (1,)), ("f8", (256, 256), (1, 1)), ("f4", (256, 256), (2, 2)),
        ("u1", (256, 256, 1), (1, 1, 3)), ("f4", (50_000,), (4, 1)),
    ],
    "to 32 MB": [
        ("f4", (1024, 1024), (1, 1)), ("f4", (1024, 1024), (2, 2)), ("f8", (1024, 1024), (1, 2)),
        ("f4", (200_000, 3), (1, 5)), ("f4", (2048, 4096), (1,)),
    ],
}
# fmt: on


class Own(np.ndarray):
    """As a caller writes one, with an attribute."""

    def __array_finalize__(self, obj):
        self.unit = getattr(obj, "unit", None)


class Reshaping(Own):
    """With a reshape of its own: what repeats is left to numpy.tile."""

    def reshape(self, *shape, **options):
        return super().reshape(*shape, **options)


KINDS = {
    "float": lambda x: float(x.flat[0]),
    "list": np.ndarray.tolist,
    "tuple": lambda x: tuple(x.tolist()),
    "matrix": lambda x: x.view(np.matrix),
    "record array": lambda x: x.view(np.recarray),
    "own class": lambda x: x.view(Own),
    "own class with a reshape": lambda x: x.view(Reshaping),
    "masked array": lambda x: np.ma.array(x, mask=x > 5),
}

KIND_SHAPES = [(4, 4), (64, 64)]
KIND_REPS = [(1, 1), (1, 3), (2, 2)]


def compare(x, reps, pairs: int) -> float:
    """NumPy's time over tilecore's; the result is checked first."""
    np.testing.assert_array_equal(tilecore.tile(x, reps), np.tile(x, reps), strict=True)
    calls = {"ours": lambda: tilecore.tile(x, reps), "theirs": lambda: np.tile(x, reps)}
    found = in_turn({name: Call(call) for name, call in calls.items()}, pairs, pairs)
    return median(b / a for a, b in zip(found["ours"], found["theirs"], strict=True))


def compare_forms(forms: list[str], pairs: int, only: str) -> dict[str, float]:
    """Print the table of forms; the ratio of each case."""
    found, rows = {}, []
    for form in forms:
        rows.append([form])
        for cases in CASES.values():
            of_cell = {}
            for dtype, shape, reps in cases:
                given = FORMS[form](reps)
                if only in (name := f"{dtype} {shape} × {given!r}"):
                    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
                    of_cell[name] = compare(x, given, pairs)
            values = of_cell.values()
            rows[-1].append(f"{median(values):.2f}, {min(values):.2f}" if of_cell else "")
            found |= of_cell
    print(table(["repeats", *CASES], rows))
    return found


def compare_kinds(pairs: int, only: str) -> dict[str, float]:
    """Print the table of kinds of input; the ratio of each case."""
    cases = [(shape, reps) for shape in KIND_SHAPES for reps in KIND_REPS]
    found, rows = {}, []
    for kind, make in KINDS.items():
        if only in kind:
            rows.append([kind])
            for shape, reps in cases:
                x = make(np.arange(np.prod(shape), dtype="f8").reshape(shape))
                ratio = found[f"{kind} {shape} × {reps}"] = compare(x, reps, pairs)
                rows[-1].append(f"{ratio:.2f}")
    print(table(["input", *(f"{shape} × {reps}" for shape, reps in cases)], rows))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--pairs", type=int, default=15, help="of each case")
    parser.add_argument("--only", default="", help="cases that hold this text")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--kinds", action="store_true", help="kinds of input, not forms of repeats")
    arguments = parser.parse_args()
    machine.show()
    if arguments.kinds:
        found = compare_kinds(arguments.pairs, arguments.only)
    else:
        found = compare_forms(arguments.forms, arguments.pairs, arguments.only)
    behind = [f"- {name}: {ratio:.2f}" for name, ratio in found.items() if ratio < 1]
    print("NumPy is faster:" + ("\n" if behind else " nowhere.") + "\n".join(behind))


if __name__ == "__main__":
    main()
