"""DirectML's Tile: the table of feature levels, 32-bit sizes of at least 1."""

import numpy as np
import pytest

from tilecore import directml

pytestmark = pytest.mark.quick

FLOATS = {"FLOAT32", "FLOAT16"}
TO_32 = FLOATS | {"INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8"}
TO_64 = TO_32 | {"INT64", "UINT64"}
LEVELS = {
    **dict.fromkeys(["1_0", "2_0"], ([4], FLOATS)),
    **dict.fromkeys(["2_1", "3_0"], ([4], TO_32)),
    **dict.fromkeys(["3_1", "4_0"], (range(1, 9), TO_32)),
    **dict.fromkeys(["4_1", "6_4", "10_0"], (range(1, 9), TO_64)),
}
CODES = "? b h i q B H I Q e f d g F D S1 U1 O".split()


@pytest.mark.parametrize("level", LEVELS)
def test_ranks_and_types_of_each_level(level, oracle):
    ranks, types = LEVELS[level]
    assert sorted(directml.supported_types(level)) == sorted(types)
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
            with pytest.raises(TypeError, match=f"^DirectML Tile, feature level {level}: input is of"):
                directml.tile(x, [1, 1, 1, 2], feature_level=level)


def test_types_in_the_order_of_the_tables():
    assert directml.supported_types() == tuple(
        "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8".split()
    )


@pytest.mark.parametrize(
    "level, error",
    [
        *[(text, ValueError) for text in ["0_9", "", "4", "4.1", "4_", "_1", "4_1\n", "04_1"]],
        *[(text, ValueError) for text in ["4_01", "4_1_0", "DML_FEATURE_LEVEL_4_1", "-1_0"]],
        pytest.param("\N{ARABIC-INDIC DIGIT FOUR}_1", ValueError, id="digits of another script"),
        *[(level, TypeError) for level in [4.1, 41, None, (4, 1), ["4_1"], b"4_1"]],
    ],
)
def test_what_is_no_feature_level(level, error):
    for call in (
        lambda: directml.tile(np.ones(2, np.float32), [1], feature_level=level),
        lambda: directml.infer_shape((2,), [1], feature_level=level),
        lambda: directml.supported_types(level),
    ):
        with pytest.raises(error, match="^DirectML Tile: feature_level"):
            call()


@pytest.mark.parametrize(
    "shape, repeats, error, text",
    [
        ((2, 3), [1, 0], ValueError, "repeats must be 1 to 4294967295, got 0 for axis 1"),
        ((2, 3), [-1, 1], ValueError, "repeats must be 1 to 4294967295, got -1 for axis 0"),
        ((1,), [2**32], ValueError, "repeats must be .* got 4294967296 for axis 0"),
        ((1,), [10**5000], ValueError, "repeats must be .* got <integer of 16610 bits> for axis 0"),
        ((2, 3), [1], ValueError, "repeats has length 1"),
        ((2, 3), [1, 1, 1], ValueError, "repeats has length 3"),
        ((), [], ValueError, "input has rank 0, expected 1 to 8"),
        ((2, 0), [1, 1], ValueError, "input must not have an empty axis, but has size 0 for axis 1"),
        # DML_BUFFER_TENSOR_DESC: the size of a tensor "may not exceed (2^32 - 1) elements".
        ((2, 3), [2**31, 1], ValueError, "the output would have more than 4294967295 .* axis 0"),
        ((2, 3), [2**16, 2**16], ValueError, "the output would have more than 4294967295 .* axis 1"),
        ((2, 3), [[1, 1]], ValueError, "repeats must be one-dimensional"),
        ((2, 3), [1.0, 1], TypeError, "repeats must be integers, but item 0 is of type float"),
        ((2, 3), [True, 1], TypeError, "repeats must be integers, but item 0 is of type bool"),
        ((2, 3), np.array([1.0, 1]), TypeError, "repeats has dtype float64"),
    ],
    ids=lambda value: None if isinstance(value, list) else str(value)[:30],
)
def test_requests_that_are_not_legal(shape, repeats, error, text):
    with pytest.raises(error, match=f"^DirectML Tile, feature level 4_1: {text}"):
        directml.tile(np.zeros(shape, np.uint8), repeats)
    with pytest.raises(error, match="^DirectML Tile, feature level 4_1: "):
        directml.infer_shape(shape, repeats)


@pytest.mark.parametrize("code", [*"bhilBHIL", ">u4"])
def test_every_integer_type_of_repeats(code):
    assert directml.tile(np.ones((2, 3), np.int8), np.array([2, 1], code)).shape == (4, 3)


@pytest.mark.parametrize(
    "sizes, repeats, expected",
    [
        ((1, 1, 2, 3), [1, 1, 3, 3], (1, 1, 6, 9)), (("N", 3, None), [1, 2, 2], ("N", 6, None)),
        ((1, 2), ["R", None], ("R", None)), ((2, 3), None, (None, None)), (None, [1, 2], (None, None)), (None, None, None),
        ((1,), [2**32 - 1], (2**32 - 1,)), ((65535, 1), [1, 65537], (65535, 65537)),  # the largest output
    ],
)  # fmt: skip
def test_infer_shape(sizes, repeats, expected):
    assert directml.infer_shape(sizes, repeats) == expected


@pytest.mark.parametrize(
    "sizes, repeats",
    [
        (("N", 0), [1, 1]), (("N", 2**20), [1, 2**12]), ((None,), [0]), (None, [0]), (None, [2**32]),
        (None, [2**16, 2**16]), (None, [1] * 9), ((2,), [1, "R"]),
    ],
)  # fmt: skip
def test_infer_shape_refuses_what_no_size_can_mend(sizes, repeats):
    with pytest.raises(ValueError, match="^DirectML Tile, feature level 4_1: "):
        directml.infer_shape(sizes, repeats)


def test_errors_name_the_parameter_and_the_dialect():
    with pytest.raises(ValueError, match=r"^DirectML Tile, feature level 4_1: (?!tile:)"):  # the core's
        directml.tile(np.ones(2, np.float32), [2], np.empty(3, np.float32))
    with pytest.raises(ValueError, match="4_1: sizes must not have an empty axis"):
        directml.infer_shape((2, 0), [1, 1])
    with pytest.raises(ValueError, match=r"4_1: repeats has rank 0, expected 1, as in \[2\]; input"):
        directml.tile(np.ones(3, np.float32), 2)
