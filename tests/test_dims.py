"""`dims` against enumeration, where a small range is the set of its numbers."""

import re
import sys
from contextlib import contextmanager
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilecore._core.request.errors import RequestError, format_error
from tilecore._dialects.dims import as_repeats_dims, as_shape, make_range, multiply
from tilecore.onnx import infer_shape

pytestmark = pytest.mark.quick

INT64_MAX = 2**63 - 1
NAMES = st.sampled_from(["N", "M", "batch", "_x", "N10", "N2", "é"])
TEXTS = st.text("NM23*( )+", max_size=12).filter(lambda text: "**" not in text)  # 2**2**9999


@contextmanager
def refused(kind, text):
    """The error as the user of a dialect reads it."""
    with pytest.raises(RequestError) as raised:
        yield
    error = format_error(raised.value, "X")
    assert type(error) is kind and re.match(f"X: {text}", str(error)), error


RANGES = [(low, high) for low in range(5) for high in (*range(low, 5), None)]


@pytest.mark.parametrize("dim, repeat", list(product(RANGES, RANGES)))
def test_multiply_is_the_tightest_range(dim, repeat):
    # An open range is cut at a number above every product of closed ones.
    numbers = [range(low, (40 if high is None else high) + 1) for low, high in (dim, repeat)]
    products = {a * b for a, b in product(*numbers)}
    high = None if max(products) >= 40 else max(products)
    assert multiply(make_range(*dim), make_range(*repeat)) == make_range(min(products), high)


@given(*[st.integers(0, INT64_MAX) | st.sampled_from([0, 1, 2, 2**31, 2**32, 2**62])] * 2)
@example(3037000500, 3037000500)  # the smallest square past int64
@example(INT64_MAX, 1)
@example(INT64_MAX, 0)
def test_known_numbers_multiply_or_overflow(dim, repeat):
    if dim * repeat > INT64_MAX:
        with pytest.raises(ValueError, match=f"axis 1 overflows int64: {dim} \\* {repeat};"):
            infer_shape((2, dim), (3, repeat))
    else:
        assert infer_shape((2, dim), (3, repeat)) == (6, dim * repeat)


@pytest.mark.parametrize("dim, repeat, expected", [
    ("N", 1, "N"), (1, "R", "R"), ("N", 0, 0), (0, "R", 0), ("N", 2, None), ("N", "N", None), ("N", None, None),
    ("N", (2, 3), None), (None, 1, None), (None, 0, 0), ((2, 5), 2**62, None), (2, (2**62, None), None),
    ((1, 5), 2**62, (2**62, None)),  # past int64 the range is open
])  # fmt: skip
def test_multiply_what_is_not_known(dim, repeat, expected):
    assert multiply(dim, repeat) == expected


FACTORS = NAMES | st.integers(1, 50) | st.sampled_from(["N + 1", "floor(M/2)", "2*N*(M + 3)"])


@given(st.lists(FACTORS, min_size=2, max_size=4))
@settings(max_examples=40)
def test_products_are_those_of_sympy(factors):
    sympy = pytest.importorskip("sympy")
    names = {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in ("N", "M", "batch", "_x", "N10", "é")}
    product, text = sympy.Integer(1), 1
    for factor in factors:
        product *= sympy.sympify(factor, names)
        text = multiply(text, factor, products=True)
    assert str(text) == str(product)


@given(TEXTS, TEXTS)
@example("N*(N+2)", "M + 3")
@example("N//2", "M%2")
@example("9**9**9**9", "N")
def test_any_text_is_a_symbol(one, two):
    """Read as Python, the product has the value of its factors, where those can be read."""
    pytest.importorskip("sympy")
    product, names = multiply(one, two, products=True), {"N": 7, "M": 11, "__builtins__": {}}
    try:
        expected = 0 if "**" in one else eval(one, names) * eval(two, names)
        assert isinstance(expected, int) and "**" not in one
    except Exception:
        return
    assert eval(str(product), names) == expected


@pytest.mark.parametrize("text", [
    "((9**63)**63)**63", "9" * 19 + "1", "-" * 5000 + "1", "Max(Max(a, b, c, d), Max(e, f, g, h), i, j)", "floor()",
])  # fmt: skip
def test_what_cannot_be_read_in_time_is_one_symbol(text):
    pytest.importorskip("sympy")
    assert multiply(text, 2, products=True) == (f"2*{text}" if text.isdigit() else f"2*({text})")


def test_products_need_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ImportError, match="^ONNX Tile-13: products=True needs SymPy: pip install sympy; "):
        infer_shape((2,), (3,), products=True)


VALUES = [-1, 2**63, 10**5000, -(10**5000), "", (3, 2), (-1, 2), (1, 2, 3), ((1, 2), 3), [1, 2]]
TYPES = [(1, "N"), (None, 2), 2.0, True, b"N"]
NO_SHAPES = [((1, 2), 3), [1, 2]]  # arrays of these have other axes


@pytest.mark.parametrize(
    "value, error",
    [*((value, ValueError) for value in VALUES), *((value, TypeError) for value in TYPES)],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_dimension(value, error):
    words = "must be .*, but item 1 is " if value in NO_SHAPES else "item 1 must be .*, got "
    with refused(error, f"shape {words}"):
        as_shape((4, value), "shape", intervals=True)


def test_intervals_only_where_asked():
    assert as_shape([(2, 2), (0, None), (1, 4)], "X", intervals=True) == (2, None, (1, 4))
    with refused(ValueError, "shape must be one-dimensional, but item 0 is of type tuple"):
        as_shape([(1, 4)], "shape")


def test_the_symbols_of_onnx_ir():
    symbols = [type("SymbolicDim", (), {"value": value})() for value in ("N", None)]
    assert as_shape([2, *symbols], "X") == (2, "N", None)
    with refused(TypeError, "shape item 0 must be an int, a str or None, got b'N'"):
        as_shape([b"N"], "shape")


def test_shape_is_an_iterable_of_bounded_length():
    with refused(ValueError, "shape must have at most 64"):
        as_shape(iter(int, 1), "shape")
    for value in ("NC", b"NC", 3):
        with refused(TypeError, "shape must be a tuple of dimensions"):
            as_shape(value, "shape")


@pytest.mark.parametrize("repeats, repeats_shape, expected", [
    (None, None, (None, None)), (None, [3], (3, None)), (None, [(2, 4)], ((2, 4), None)),
    *(([2, None], shape, (2, (2, None))) for shape in (None, [(1, 2)], ["R"])),
])  # fmt: skip
def test_repeats_and_the_shape_of_repeats(repeats, repeats_shape, expected):
    assert as_repeats_dims(repeats, repeats_shape, intervals=True) == expected


@pytest.mark.parametrize("repeats_shape", [[], [1, 1], [3], [(3, None)], [(0, 1)]])
def test_repeats_that_contradict_their_shape(repeats_shape):
    with refused(ValueError, "repeats(_shape must have 1 entry| has length 2, which contradicts)"):
        as_repeats_dims([2, None], repeats_shape, intervals=True)
