"""`dims` against enumeration: a small range is the set of its numbers."""

import re
from contextlib import contextmanager
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tilecore._core.refusals import Refusal, worded
from tilecore._dialects.dims import (
    as_repeats_dims,
    as_shape,
    bounds,
    canonical,
    multiply,
    tile_dims,
)

pytestmark = pytest.mark.quick

INT64_MAX = 2**63 - 1


@contextmanager
def refused(kind, text):
    """As the user of a dialect reads it."""
    with pytest.raises(Refusal) as raised:
        yield
    error = worded(raised.value, "X")
    assert type(error) is kind and re.match(f"X: {text}", str(error)), error


RANGES = [(low, high) for low in range(5) for high in (*range(low, 5), None)]


@pytest.mark.parametrize("dim, repeat", list(product(RANGES, RANGES)))
def test_multiply_is_the_tightest_range(dim, repeat):
    # An open range is cut at a number that no product of the closed ones reaches.
    numbers = [range(low, (40 if high is None else high) + 1) for low, high in (dim, repeat)]
    products = {a * b for a, b in product(*numbers)}
    high = None if max(products) >= 40 else max(products)
    assert multiply(canonical(*dim), canonical(*repeat)) == canonical(min(products), high)


@given(*[st.integers(0, INT64_MAX) | st.sampled_from([0, 1, 2, 2**31, 2**32, 2**62])] * 2)
@example(3037000500, 3037000500)  # the smallest square past int64
@example(INT64_MAX, 1)
@example(INT64_MAX, 0)
def test_known_numbers_multiply_or_overflow(dim, repeat):
    if dim * repeat > INT64_MAX:
        with pytest.raises(OverflowError):
            multiply(dim, repeat)
    else:
        assert multiply(dim, repeat) == dim * repeat


@pytest.mark.parametrize(
    "dim, repeat, expected",
    [
        ("N", 1, "N"),
        (1, "R", "R"),
        ("N", 0, 0),
        (0, "R", 0),
        ("N", 2, None),
        ("N", "N", None),
        ("N", None, None),
        ("N", (2, 3), None),
        (None, 1, None),
        (None, 0, 0),
        ((1, 5), 2**62, (2**62, None)),  # past int64 the range is open
        ((2, 5), 2**62, None),
        (2, (2**62, None), None),
    ],
)
def test_multiply_what_is_not_known(dim, repeat, expected):
    assert multiply(dim, repeat) == expected


def test_canonical_and_bounds():
    assert [canonical(3, 3), canonical(0, None), canonical(0, 0)] == [3, None, 0]
    assert [bounds(3), bounds(None), bounds("N"), bounds((2, None))] == [
        (3, 3),
        (0, None),
        (0, None),
        (2, None),
    ]


def test_overflow_names_the_axis():
    with refused(ValueError, r"axis 1 overflows int64: 2 \* 4611686018427387904"):
        tile_dims(("N", 2), (1, 2**62))


@pytest.mark.parametrize(
    "value, error",
    [
        (-1, ValueError),
        (2**63, ValueError),
        pytest.param(10**5000, ValueError, id="huge"),
        pytest.param(-(10**5000), ValueError, id="-huge"),
        ("", ValueError),
        ((3, 2), ValueError),
        ((-1, 2), ValueError),
        ((1, 2, 3), ValueError),
        (((1, 2), 3), ValueError),
        ([1, 2], ValueError),
        ((1, "N"), TypeError),
        ((None, 2), TypeError),
        (2.0, TypeError),
        (True, TypeError),
        (b"N", TypeError),
    ],
)
def test_what_is_no_dimension(value, error):
    with refused(error, "shape must be .*, but item 1 is "):
        as_shape((4, value), "shape", intervals=True)


def test_intervals_only_where_asked():
    assert as_shape([(2, 2), (0, None), (1, 4)], "X", intervals=True) == (2, None, (1, 4))
    with refused(ValueError, "shape must be one-dimensional, but item 0 is a tuple"):
        as_shape([(1, 4)], "shape")


def test_shape_is_an_iterable_of_bounded_length():
    with refused(ValueError, "shape has more than 64"):
        as_shape(iter(int, 1), "shape")
    for value in ("NC", 3):
        with refused(TypeError, "shape must be a tuple of dimensions"):
            as_shape(value, "shape")


@pytest.mark.parametrize(
    "repeats, repeats_shape, expected",
    [
        (None, None, (None, None)),
        (None, [3], (3, None)),
        (None, [(2, 4)], ((2, 4), None)),
        ([2, None], None, (2, (2, None))),
        ([2, None], [(1, 2)], (2, (2, None))),
        ([2, None], ["R"], (2, (2, None))),
    ],
)
def test_repeats_and_the_shape_of_repeats(repeats, repeats_shape, expected):
    assert as_repeats_dims(repeats, repeats_shape, intervals=True) == expected


@pytest.mark.parametrize("repeats_shape", [[], [1, 1], [3], [(3, None)], [(0, 1)]])
def test_repeats_that_contradict_their_shape(repeats_shape):
    with refused(ValueError, "repeats(_shape must have 1 entry| has length 2, which contradicts)"):
        as_repeats_dims([2, None], repeats_shape, intervals=True)
