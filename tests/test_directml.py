"""DirectML's Tile: the table of feature levels, 32-bit sizes of at least 1."""

import numpy as np
import pytest

from tilecore import directml

pytestmark = pytest.mark.quick

TO_64 = tuple("FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8".split())  # as in the tables
FLOATS, TO_32 = TO_64[:2], tuple(name for name in TO_64 if "INT64" not in name)
LEVELS = {
    **dict.fromkeys(["1_0", "2_0"], ([4], FLOATS)),
    **dict.fromkeys(["2_1", "3_0"], ([4], TO_32)),
    **dict.fromkeys(["3_1", "4_0"], (range(1, 9), TO_32)),
    **dict.fromkeys(["4_1", "5_9", "6_4"], (range(1, 9), TO_64)),
}
CODES = "? b h i q B H I Q e f d g F D S1 U1 O".split()


@pytest.mark.parametrize("level", LEVELS)
def test_ranks_and_types_of_each_level(level, oracle):
    ranks, types = LEVELS[level]
    assert directml.supported_types(level) == types
    for rank in range(10):
        x, repeats = np.ones((1,) * rank, np.float16), [2] * rank
        if rank in ranks:
            result = directml.tile(x, repeats, feature_level=level)
            np.testing.assert_array_equal(result, oracle(x, repeats), strict=True)
        else:
            with pytest.raises(ValueError, match=f"^DirectML Tile, feature level {level}: input has rank"):
                directml.tile(x, repeats, feature_level=level)
    for code in CODES:
        x = np.zeros((1, 1, 1, 2), code)
        if x.dtype.name.upper() in types:
            x = x.astype(x.dtype.newbyteorder())
            result = directml.tile(x, [1, 1, 1, 2], feature_level=level)
            np.testing.assert_array_equal(result, oracle(x, (1, 1, 1, 2)), strict=True)
        else:
            with pytest.raises(TypeError, match="input is of"):
                directml.tile(x, [1, 1, 1, 2], feature_level=level)


def test_a_level_of_another_class_of_text():
    """It is the same level as the plain text, and later errors do not show its own text."""
    odd = type("Level", (str,), {"__format__": lambda *_: "odd"})
    x = np.ones((1, 1, 1, 1), np.float32)
    for level in (odd("5_3"), "5_3"):
        with pytest.raises(ValueError, match="^DirectML Tile, feature level 5_3: repeats must be 1 to"):
            directml.tile(x, [0, 1, 1, 1], feature_level=level)


@pytest.mark.parametrize("shape, repeats, text", [
    ((1,), [2**32], "repeats must be .* got 4294967296 for axis 0"), ((), [], "input has rank 0, expected 1 to 8"),
    ((2, 0), [1, 1], "input must not have an empty axis, but has size 0 for axis 1"),
])  # fmt: skip
def test_shapes_that_are_not_legal(shape, repeats, text):
    with pytest.raises(ValueError, match=text):
        directml.tile(np.zeros(shape, np.uint8), repeats)
    with pytest.raises(ValueError, match=text.replace("input", "sizes")):
        directml.infer_shape(shape, repeats)


@pytest.mark.parametrize("sizes, repeats, expected", [
    ((1, 1, 2, 3), [1, 1, 3, 3], (1, 1, 6, 9)), (("N", 3, None), [1, 2, 2], ("N", 6, None)),
    ((1, 2), ["R", None], ("R", None)), ((2, 3), None, (None, None)), (None, [1, 2], (None, None)), (None, None, None),
    ((1,), [2**32 - 1], (2**32 - 1,)), ((65535, 1), [1, 65537], (65535, 65537)),  # the largest output
])  # fmt: skip
def test_infer_shape(sizes, repeats, expected):
    assert directml.infer_shape(sizes, repeats) == expected


@pytest.mark.parametrize("sizes, repeats", [
    (("N", 0), [1, 1]), (("N", 2**20), [1, 2**12]), ((None,), [0]), (None, [0]), (None, [2**32]),
    (None, [2**16, 2**16]), (None, [1] * 9), ((2,), [1, "R"]),
])  # fmt: skip
def test_infer_shape_refuses_what_no_size_can_mend(sizes, repeats):
    with pytest.raises(ValueError, match="^DirectML Tile"):
        directml.infer_shape(sizes, repeats)
