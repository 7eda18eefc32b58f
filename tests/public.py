"""The public functions with good arguments, found by their signatures."""

import inspect
import re

import numpy as np

import tilecore
from tilecore._dialects import tensors


def x():
    return np.arange(6, dtype="f4").reshape(2, 3)


class Public:
    """A public function, or a method of a plan, with good arguments."""

    def __init__(self, name, function, dialect=None):
        self.name, self.function, self.parameters = name, function, inspect.signature(function).parameters
        self.label, self.traits = f"{name} {function.__name__}", {}
        self.begin = name  # of errors: a dialect's has the function's version, or else the default one
        if dialect:
            version = re.search(r"_(\d+)$", function.__name__)
            default = dialect.version()
            self.begin = f"{name} Tile-{version[1]}" if version else default.name
            names = "any_length", "count_types", "max_elements", "min_repeat"
            facts = {name: getattr(default, name) for name in names}
            types = None if default.types is tensors.EVERY_TYPE else default.types
            self.traits = facts | {"tiles": "out" in self.parameters, "types": types, "options": dialect.options}
            self.traits["text"] = types is None or "str" in types.names

    def good(self):
        """By the names of the parameters, and made anew for each call. A dialect's first one has a name of its own."""
        names = self.parameters.keys()
        sizes = {"start": (2, 3), "tiles": (4, 3), "arrays": (1, 4, 6)}
        size = next((size for name, size in sizes.items() if name in names), (4, 6))
        known = dict(
            a=x(), shape=(2, 3), arrays=[x()], reps=(1, 1) if self.name == "tile_view" else (2, 2), dtype="f4",
            start=(1, 1), stop=(3, 4), mode="dicts", n=2, out=np.full(size, 9, "f4"), threads=1,
            axis=(0, 1) if "reps" in names else 0, repeats=[2, 2], repeats_shape=(2,), tiles=2, opset=13,
            feature_level="4_1", products=False,
        )  # fmt: skip
        if names & {"repeats", "tiles"}:
            known[next(iter(names))] = x() if "out" in names else (2, 3)
        return {name: known[name] for name in names}

    def __call__(self, arguments):
        return self.function(*arguments.values()) if "n" in arguments else self.function(**arguments)


def periodic(a, start, stop, out=None, *, threads=None):
    return tilecore.tile_region(a, None, start, stop, out, threads=threads)


def find_public():
    plan = tilecore.TilePlan((2, 3), (2, 2), "f4")
    for value in (getattr(tilecore, name) for name in (*tilecore.__all__, *tilecore._DIALECTS)):
        if inspect.ismodule(value):
            for function in {getattr(value, name): None for name in value.__all__}:
                yield Public(value.DIALECT.name, function, value.DIALECT)
        else:
            yield Public(value.__name__, value)
    for name, method in inspect.getmembers(plan, inspect.isbuiltin):
        if not name.startswith("_"):
            yield Public(f"TilePlan.{name}", method)
    yield Public("tile_region", periodic)


PUBLIC = [function for function in find_public() if function.parameters]


def fingerprints(arguments):
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    return [(array.shape, array.strides, array.dtype, array.tobytes()) for array in arrays]
