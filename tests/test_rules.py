"""The words of each error: what each argument must be, and what an error says if it is not."""

import itertools
import re

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from public import PUBLIC, fingerprints, x

from tilecore._dialects import tensors

pytestmark = [pytest.mark.quick, pytest.mark.usefixtures("settings_stay")]


def of_dialects(**traits):
    """Chooses functions of dialects that have these traits; `tiles`: that make an array; `text`: that take strings."""
    return lambda function: function.traits and traits.items() <= function.traits.items()


def CORE(function):
    return not function.traits


def OF_TEXT(function):
    return function.label == "tile tile" or of_dialects(tiles=True, max_elements=None, text=True)(function)


AS_CORE, FINITE, MOST = of_dialects(tiles=True, max_elements=None), "^(?!.*periodic)", 2**63 - 1
INTEGERS = "reps|shape|start|stop|axis"
NO_SEQUENCES = [1.0, True, np.True_, "", "22", b"", b"\2", bytearray(b"\2"), set(), {2, 3}, frozenset([2])]
RAGGED, MASKED = [[1], [2, 3]], np.ma.array(x())
LENGTH = "(use // for a number of copies, tilecore.tile_region for a length)"
FIRST, SECOND = (f"item {k} is of type {{0[{k}].__class__.__name__}}" for k in (0, 1))
AXIS_ERROR = np.exceptions.AxisError

# Functions by label, or by a test. Then one of several arguments "a|b", or two at once, "a b". Then bad values, each
# for a call; a function makes one from the good `out`. Then the error, and its words, formatted with name and value.
RULES = [
    (CORE, INTEGERS, NO_SEQUENCES, TypeError, "{name} must be an integer or a sequence of integers, got {type}"),
    *[(functions, names, [None], TypeError, "{name} must be an integer or a sequence of integers, got NoneType")
      for functions, names in (("^(?!tile_region)", "reps|shape"), ("", "start|stop"))],
    (CORE, INTEGERS, [("a", "b"), np.array([1.5]), [False], (np.True_, 2), np.array([True])], TypeError,
     "{name} must be integers, but " + FIRST),
    ("", "reps", [2.5, np.float32(2)], TypeError,
     "reps must be an integer or a sequence of integers, got {type} " + LENGTH),
    ("", "reps|repeats", [(1.5, 1)], TypeError, "{name} must be integers, but item 0 is of type float " + LENGTH),
    (CORE, INTEGERS, [(2, 1.0), (-1, "a"), (2, True)], TypeError, "{name} must be integers, but " + SECOND),
    (CORE, INTEGERS, [[[1, 2]], np.ones((1, 2), int)], ValueError,
     "{name} must be one-dimensional, but item 0 is of type {0[0].__class__.__name__}"),
    (CORE, INTEGERS, [[1] * 65, np.ones(65, int), np.ones(65, "u1"), itertools.repeat(1)], ValueError,
     "{name} must have at most 64 entries"),
    (CORE, "reps|shape", [-1, (-1, 2**63)], ValueError, "{name} must not be negative, got -1"),
    (CORE, "reps|shape", [(1, -(10**30))], ValueError, "{name} must not be negative, got {0[1]}"),
    # sizes
    ("", "reps", [2**62], ValueError, "axis 1 overflows: 3 * {} is more than {MOST}"),
    ("", "reps", [2**63, 10**30], ValueError, "reps does not fit 64 bits, got {} for axis 1"),
    ("", "reps", [(2**32, 2**32)], ValueError,
     f"the result would have more than {{MOST}} elements: its shape {(2**33, 3 * 2**32)} overflows at axis 1"),
    ("^(?!output)", "reps", [(2**30, 2**29)], ValueError, "the result would have more than {MOST} bytes"),
    ("tile tile$|mapped", "reps", [2**45], MemoryError, f"the result...would take {24 * 2**45} bytes (844 TB), more"),
    *[  # a model's repeats that ask for petabytes
        (OF_TEXT, "a reps|input repeats|data repeats", [(np.full(4, "a", t), [n]) for t in (object, "U3")], kind, words)
        for n, kind, words in [(2**45, MemoryError, "the result would take "), (2**62, ValueError, "axis 0 overflows")]
    ],
    ("", "shape reps", [((2**40, 2**40), 1)], ValueError, "the result would have more than {MOST} elements"),
    # regions
    ("", "start|stop", [(0,), (1, 1, 1)], ValueError, "{name} must have 2 entries, one for each axis of the "),
    (FINITE, "stop", [(4, 7)], ValueError, "expected 0 <= start <= stop <= 6 on axis 1, got start 1, stop 7"),
    (FINITE, "start stop", [((2, 0), (1, 6))], ValueError, "expected 0 <= start <= stop <= 4 on axis 0, got start 2"),
    (FINITE, "start", [(-1, 0)], ValueError, "expected 0 <= start <= stop <= 4 on axis 0, got start -1"),
    ("periodic", "start stop", [((0, 2), (1, 1))], ValueError, "expected start <= stop on axis 1, got start 2, stop 1"),
    ("", "start", [(-(2**63) - 1, 0)], ValueError, "start does not fit 64 bits, got {0[0]} for axis 0"),
    ("", "stop", [(1, 2**63)], ValueError, "stop does not fit 64 bits, got {0[1]} for axis 1"),
    ("periodic", "start stop", [((-(2**63), 0), (0, 1))], ValueError, "axis 0 overflows: from {0[0][0]} to 0"),
    ("periodic", "start stop", [((0, -5), (2**40, 2**40))], ValueError, "the result would have more than {MOST} elem"),
    ("periodic", "start stop", [((0, 0), (2**31, 2**31))], ValueError, "the result would have more than {MOST} bytes"),
    ("periodic", "stop", [(2**30 + 1, 2**30 + 1)], MemoryError,
     f"the result would take {2**62} bytes (4.61 EB), more than the limit"),
    ("^tile_region tile", "reps axis", [(None, 0)], ValueError, "axis must be None if reps is None"),
    ("periodic", "a start stop", [(np.zeros((2, 0)), (0, -1), (0, 1))], ValueError,
     "axis 1 of the input is empty, but the region has 2 elements along"),
    # axis
    ("", "reps axis", [(2, 2), (2, -3)], AXIS_ERROR, "axis {0[1]} is out of bounds for array of dimension 2"),
    ("", "reps axis", [(2, 9**30), (2, -(2**70))], AXIS_ERROR, "axis {0[1]} is out of bounds for every array"),
    ("", "reps axis", [((2, 2), (1, -1)), ((1, 0), (1, 1))], ValueError, "axis must not contain axis 1 twice"),
    ("", "reps axis", [((2, 2), 1)], ValueError, "reps must have as many entries as axis, 1, got 2"),
    ("", "reps axis", [(2, (0, 1))], ValueError, "reps must have as many entries as axis, 2, got 1"),
    ("", "reps axis", [([2] * 65, range(65))], ValueError, "reps must have at most 64 entries"),
    ("", "reps axis", [((2, -1), (0, 1))], ValueError, "reps must not be negative, got -1"),
    ("", "reps axis", [(2**63, 0)], ValueError, "reps does not fit 64 bits, got {0[0]}"),
    # out
    ("", "out", [lambda out: out.tolist()], TypeError, "out must be a NumPy array, got list"),
    ("", "out", [np.ma.asarray], TypeError, "out must be a NumPy array, got MaskedArray"),
    ("", "out", [lambda out: out[..., :-1], np.ravel], ValueError, "out must have shape ("),
    ("", "out", [lambda out: out.astype("f8")], TypeError, "out must have dtype float32, got float64"),
    ("", "out", [lambda out: out.astype(out.dtype.newbyteorder())], TypeError, "out must have dtype float32, got "),
    ("", "out", [lambda out: as_strided(out, out.shape, (4,) * out.ndim)], ValueError,
     "out must not have overlapping elements"),
    ("", "out", [lambda out: out.setflags(write=False) or out, lambda out: np.broadcast_to(out[..., :1], out.shape)],
     ValueError, "out must be writeable, got a read-only array"),
    ("", "a out|input out|data out|arrays out", [(lambda out: out[..., :2, :3], np.asarray)], ValueError,
     "out must not share memory with the input"),
    ("", "arrays out", [(lambda out: [out.ravel()[-6:].reshape(2, 3)], np.asarray)], ValueError,
     "out must not share memory with arrays[0]"),
    # inputs
    ("view|TilePlan", "a", [MASKED], TypeError, "a must be a plain array, got MaskedArray"),
    ("", "a|input|data", [RAGGED], ValueError, "{name} of type list cannot be read as an array: "),
    ("", "input|data", [MASKED], TypeError, "{name} is a masked array of shape (2, 3), "
     "expected a plain array (tilecore.tile keeps masks)"),
    (lambda function: function.traits.get("types"), "input", [None, np.zeros((2, 3), "S1"), np.zeros((2, 3), "V4")],
     TypeError, "input is of type ...; tilecore.tile takes every dtype"),
    ("TilePlan", "a", [np.zeros(shape, "f4") for shape in ((3, 2), (6,), (1, 2, 3), ())], ValueError,
     "a must have shape (2, 3), got {0.shape}"),
    ("TilePlan", "a", [np.zeros((2, 3))], TypeError, "a must have dtype float32, got float64"),
    ("", "arrays", [[x(), x(), x()[0]]], ValueError, "arrays[2] must have shape (2, 3), got (3,)"),
    ("", "arrays", [[x(), x().T]], ValueError, "arrays[1] must have shape (2, 3), got (3, 2)"),
    ("", "arrays", [(x(), x().astype("f8")), *((x(), x().view(t)) for t in (">f4", "i4", [("a", "<f4")]))], TypeError,
     "arrays[1] must have dtype float32, got {0[1].dtype}"),
    ("", "arrays", [[x(), MASKED]], TypeError, "arrays[1] must be a plain array, got Mask"),
    ("", "arrays", [[x(), RAGGED]], ValueError, "arrays[1] of type list cannot be read as an array"),
    ("", "arrays", [x(), np.zeros((4, 3, 2), "f4")], ValueError, "arrays must have shape (n, 2, 3), got {0.shape}"),
    ("", "arrays", [np.zeros((4, 2, 3))], TypeError, "arrays must have dtype float32, got float64"),
    ("", "arrays", [iter([x()]), {1: x()}, None], TypeError, "arrays must be a list or a tuple of arrays"),
    # settings
    ("", "threads", [0, -1], ValueError, "threads must be at least 1, got {}"),
    ("", "threads", [1.0, "2"], TypeError, "threads must be an integer of at least 1 or None, got {!r} of type"),
    ("num_threads", "n", [0, -1], ValueError, "expected at least 1 thread, got {}"),
    ("num_threads", "n", [1.0, "2"], TypeError, "expected an integer, got {!r} of type"),
    ("^num_threads", "n", [None], TypeError, "expected an integer, got None of type NoneType"),
    ("max|limit", "n", [-1, 2**63], ValueError, "expected 0 to {MOST} bytes, got {}"),
    ("max|limit", "n", ["", "-1", "1.5G", "much", "9" * 5000], ValueError,
     "expected a number of bytes such as 1048576, 256M or 4G, got"),
    ("max|limit", "n", [1.0, b"4G"], TypeError, "expected an integer, a text such as '4G', or None, got {!r} of type"),
    ("", "mode", ["dict", "", None, 3], ValueError, "expected mode 'stdout' or 'dicts', got {!r}"),
    # dialects
    ("", "repeats", [[1] * 10**4, np.ones(10**6, np.int64)], ValueError, "repeats must have at most 64 entries"),
    ("", "repeats", [2, np.int64(2), np.array(2)], ValueError, "repeats has rank 0, expected 1, as in [2]"),
    ("", "repeats", [[[1, 1]]], ValueError, "repeats must be one-dimensional, but item 0 is of type list"),
    ("", "repeats", [np.ones((1, 2), np.int64)], ValueError, "repeats has rank 2, expected 1"),
    ("", "repeats", ["11", {1, 2}, iter([1, 1])], TypeError,
     "repeats must be a 1-D tensor or a list of ints, got {type}"),
    ("tile", "repeats", [None], TypeError, "repeats must be a 1-D tensor or a list of ints, got {type}"),
    ("", "repeats", [[True, 1], [1.0, 1]], TypeError, "repeats must be integers, but " + FIRST),
    ("tile", "repeats", [[1, "1"], [1, None]], TypeError, "repeats must be integers, but " + SECOND),
    ("", "repeats", [np.array(value) for value in ([], [1.0, 1], [True, True], np.array([1, 1], object))], TypeError,
     "repeats has dtype {0.dtype}, expected "),
    ("", "repeats", [np.ma.array([1, 1])], TypeError,
     "repeats is a masked array of shape (2,), expected a plain array"),
    (of_dialects(count_types=tensors.INT64), "repeats", [np.array([1, 1], dtype) for dtype in ("int32", "uint64")],
     TypeError, "repeats has dtype {0.dtype}, expected int64"),
    *[(of_dialects(any_length=False), "repeats", [[1] * n], ValueError,
       f"repeats has length {n}, expected the input's rank 2") for n in (0, 1, 3)],
    (of_dialects(min_repeat=0, tiles=True), "repeats", [[1, -1]], ValueError,
     "repeats must not be negative, got -1 for axis 1"),
    ("infer", "repeats", [[2**63, 1], [10**5000, 1]], ValueError, "repeats item 0 must be within int64, got"),
    (of_dialects(min_repeat=0, tiles=False), "repeats", [[-1, 1]], ValueError,
     "repeats item 0 must be 0 or more, or None if unknown, got -1"),
    (of_dialects(min_repeat=1, tiles=False), "repeats", [[0, 1], [-1, 1]], ValueError,
     "repeats item 0 must be 1 or more, or None if unknown, got {0[0]}"),
    (of_dialects(min_repeat=1, tiles=True), "repeats", [[0, 1], [-1, 1], [2**32, 1]], ValueError,
     "repeats must be 1 to 4294967295, got {0[0]} for axis 0"),
    (of_dialects(min_repeat=1, tiles=True), "repeats", [[10**5000, 1]], ValueError,
     "repeats must be 1 to 4294967295, got <integer of 16610 bits> for axis 0"),
    (of_dialects(min_repeat=None, tiles=True), "repeats", [[-(2**63) - 1, 1]], ValueError, "repeats must fit int64"),
    (AS_CORE, "repeats", [[2**62, 1]], ValueError, "axis 0 overflows: 2 * {0[0]} is more than {MOST}"),
    (AS_CORE, "repeats", [[2**63, 1]], ValueError, "repeats does not fit 64 bits, got {0[0]} for axis 0"),
    (AS_CORE, "repeats", [[10**5000, 1]], ValueError, "repeats does not fit 64 bits, got <integer of 16610 bits> for "),
    (of_dialects(tiles=True, count_types=tensors.INTEGERS, max_elements=None), "repeats", [np.uint64([2**64 - 1, 1])],
     ValueError, "repeats does not fit 64 bits, got {0[0]}"),
    (of_dialects(tiles=False, count_types=tensors.INTEGERS, max_elements=None), "repeats", [np.uint64([2**64 - 1, 1])],
     ValueError, "repeats item 0 must be within int64"),
    (AS_CORE, "repeats", [[2**32, 2**32]], ValueError, "the result would have more than {MOST} elements"),
    (AS_CORE, "repeats", [[2**40, 1]], MemoryError, f"the result would take {24 * 2**40} bytes"),
    (of_dialects(tiles=False, max_elements=None), "repeats", [[1, 2**62]], ValueError,
     "axis 1 overflows int64: 3 * {0[1]}"),
    # DML_BUFFER_TENSOR_DESC: the size of a tensor "may not exceed (2^32 - 1) elements".
    *[("DirectML", "repeats", [value], ValueError,
       f"the output would have more than 4294967295 elements, up to axis {k}")
      for k, value in enumerate([[2**31, 1], [2**16, 2**16]])],
    (of_dialects(), "tiles|axis", [2.5, np.nan, np.inf], TypeError, "{name} must be a whole number, got {}"),
    *[("", "tiles", [value], TypeError, f"tiles has dtype {np.array(value).dtype}, expected an")
      for value in (True, "2", 2j)],
    *[(of_dialects(), "tiles|axis", [[1] * n], ValueError, f"{{name}} has {n} elements, expected 1") for n in (0, 2)],
    ("tile_1", "tiles|axis", [None], TypeError, "{name} has dtype object, expected an integer or a float type"),
    ("tile_1", "input", [np.ones((2, 3), int)], TypeError, "input is of type int64, expected tensor(float16)"),
    ("tile_1", "tiles", [-1], ValueError, "tiles must not be negative, got -1 for axis 0"),
    ("tile_1", "tiles", [2**40], MemoryError, "the result would take "),
    ("tile_1", "tiles", [2**62], ValueError, "axis 0 overflows: "),
    ("tile_1", "tiles", [[10**30], 1e30], ValueError, "tiles does not fit 64 bits"),
    ("shape_1", "tiles", [-1, [10**30], 1e30], ValueError, "tiles must be 0 or more, and fit int64"),
    ("shape_1", "tiles", [2**62], ValueError, "axis 0 overflows int64: 2 * {}"),
    (of_dialects(), "axis", [2, -3, 2**70, 1e30], ValueError, "axis is {0:.0f}, expected -2 to 1"),
    ("", "opset", [0, -1], ValueError, "opset {}, expected 1 or more"),
    ("", "opset", [13.0, "13"], TypeError, "opset: expected an integer, got "),
    ("", "feature_level", [
        *("6_5", "7_0", "9_9", "10_0", "0_9", "", "4", "4.1", "4_", "_1", "4_1\n", "04_1", "4_01", "4_1_0", "-1_0"),
        *("DML_FEATURE_LEVEL_4_1", "\N{ARABIC-INDIC DIGIT FOUR}_1")],
     ValueError, "feature_level {!r}, expected a level such as 1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 "
     "6_1 6_2 6_3 6_4"),
    ("", "feature_level", [4.1, 41, None, (4, 1), ["4_1"], b"4_1"], TypeError,
     "feature_level is of type {type}, expected a str such as"),
]  # fmt: skip


def cases():
    for functions, names, values, kind, words in RULES:
        for name, value in itertools.product(names.split("|"), values):
            bad = dict(zip(name.split(), value, strict=True)) if " " in name else {name: value}
            text = words.format(value, name=name, type=type(value).__name__, MOST=MOST)
            yield pytest.param(functions, bad, kind, text, id=name)


@pytest.mark.parametrize(("functions", "bad", "kind", "words"), [*cases()])
def test_each_rule(functions, bad, kind, words, traced):
    """The error has the rule's words and what was given; nothing has been allocated or changed."""
    choose = functions if callable(functions) else lambda function: re.search(functions, function.label)
    found = [function for function in PUBLIC if bad.keys() <= function.parameters.keys() and choose(function)]
    assert found
    for function in found:
        good = function.good()
        left_out = {"out", "threads", "repeats_shape", *([] if function.traits else ["axis"])}
        arguments = {key: value for key, value in good.items() if key not in left_out}
        arguments |= {key: value(good["out"]) if callable(value) else value for key, value in bad.items()}
        before = fingerprints(arguments)
        traced.clear_traces()
        with pytest.raises(kind) as caught:
            function(arguments)
        assert traced.get_traced_memory()[1] < 1 << 20
        begins, _, said = str(caught.value).partition(": ")
        asked = [*said.rsplit("; ", 1), ""][1]
        assert caught.type is kind and len(str(caught.value)) < 1000
        integers = {"reps", "axis", "shape", "start", "stop", "threads", "n"}
        if bad.keys() <= integers or next(iter(bad.values())) is RAGGED:  # one traceback
            assert caught.value.__cause__ is None
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
        if not bad.keys() & function.traits.get("options", {}).keys():
            assert begins == function.begin
            if arguments.keys() & {"a", "input", "data"} - bad.keys() and not function.name.startswith("TilePlan"):
                assert asked.startswith(f"{'data' if 'data' in arguments else 'input'} shape (2, 3), dtype float32")
        assert "tiles" not in arguments or "repeats" not in str(caught.value)  # what was typed
        begin, *more = words.split("...")
        assert said.startswith(begin) and all(part in said for part in more), said
        for shown in bad.keys() & {"reps", "shape", "repeats", "tiles"}:
            assert bad[shown] is None or f"{shown} " in asked
        assert fingerprints(arguments) == before
