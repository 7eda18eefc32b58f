"""Shape inference for every dialect: arithmetic on dimensions that are not all known.

A dimension is what is known of a size before there is data:

    6          exactly 6
    None       anything
    "N"        anything, but the same wherever "N" stands
    (2, 5)     2 to 5; (2, None) is 2 or more; for OpenVINO only

A shape is a tuple of dimensions, or None if even the rank is unknown. Tiling multiplies dimensions by repeats. Ranges
multiply, [a, b] * [c, d] = [a*c, b*d], and a factor of 1 changes nothing, so symbols survive. Results are canonical:
(k, k) is k, and (0, None) is None.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from operator import add, mul, sub, truediv
from typing import Any, Protocol, TypeAlias

from tilecore._core.request.errors import RequestError, pass_on, short_repr, type_name
from tilecore._core.request.integers import check_length, read_item
from tilecore._dialects.tensors import INT64_MAX, INT64_MIN, INTEGERS, Types, as_repeats, check_count, draw_items


class TensorShapeProto(Protocol):
    """onnx's own class; onnx need not be installed."""

    @property
    def dim(self) -> Any: ...


Dim: TypeAlias = int | str | None
Range: TypeAlias = tuple[int, int | None]
Shape: TypeAlias = tuple[Dim, ...] | None
ShapeLike: TypeAlias = Sequence[Dim] | TensorShapeProto | None
Dims: TypeAlias = tuple[Any, ...]  # of Dim, and of Range in a dialect that has ranges


def make_range(low: int, high: int | None) -> Dim | Range:
    """The range as a canonical dimension.

    >>> make_range(3, 3), make_range(0, None), make_range(2, None)
    (3, None, (2, None))
    """
    if low == high:
        return low
    return None if (low, high) == (0, None) else (low, high)


def get_bounds(dim: Dim | Range) -> Range:
    if isinstance(dim, tuple):
        return dim
    return (dim, dim) if isinstance(dim, int) else (0, None)


def multiply(dim: Dim | Range, repeat: Dim | Range, products: bool = False) -> Dim | Range:
    """The dimension `dim`, tiled `repeat` times.

    >>> multiply("N", 1), multiply(None, 0), multiply((1, 5), 3), multiply("N", 2)
    ('N', 0, (3, 15), None)

    A range that ends beyond int64 has no upper limit, because the actual sizes may fit.
    """
    if repeat == 1:
        return dim
    if dim == 1:
        return repeat
    if isinstance(dim, int) and isinstance(repeat, int):
        return dim * repeat
    if products and isinstance(dim, (int, str)) and isinstance(repeat, (int, str)):
        # As SymPy prints it, and so onnxruntime's symbolic_shape_infer.py: "N*M" times "N" is "M*N**2".
        product = read_expression(dim) * read_expression(repeat)
        return int(product) if product.is_Integer else str(product)
    (low, high), (least, most) = get_bounds(dim), get_bounds(repeat)
    if 0 in (high, most):
        return 0
    low *= least
    high = None if high is None or most is None else high * most
    if low > INT64_MAX:
        return None
    return make_range(low, None if high is None or high > INT64_MAX else high)


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv}


def read_expression(dim: int | str) -> Any:
    """A dimension for SymPy. A text that cannot be read, or takes long, is one symbol.

    SymPy's own parser would execute the text.
    """
    sympy = import_module("sympy")

    def count(node: ast.expr, kind: type) -> int:
        return sum(isinstance(part, kind) for part in ast.walk(node))

    def read(node: ast.expr) -> Any:
        match node:
            case ast.Name(name):
                return sympy.Symbol(name, integer=True, nonnegative=True)
            case ast.Constant(number) if type(number) is int and number <= INT64_MAX:
                return sympy.Integer(number)
            case ast.BinOp(left, ast.Pow(), ast.Constant(int(power))) if power < 64 and not count(left, ast.Pow):
                return read(left) ** power
            case ast.BinOp(ast.BinOp(first, ast.Mult(), second), ast.Mult() as sign, right):
                return read(ast.BinOp(first, sign, ast.BinOp(second, sign, right)))  # 2*(N + 1) would be 2*N + 2
            case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](read(left), read(right))
            case ast.Call(ast.Name("floor" | "ceiling" | "Max" | "Min" as name), arguments, []) if (
                count(node, ast.Name) - count(node, ast.Call) <= 8
            ):
                return getattr(sympy, name)(*map(read, arguments))
        raise SyntaxError

    try:
        if len(text := str(dim)) <= 400:
            return read(ast.parse(f"({text})", mode="eval").body)
        raise SyntaxError
    except (SyntaxError, TypeError, ValueError):
        return sympy.Symbol(dim if re.fullmatch(r"[\w.:]+", text) else f"({dim})")


def check_products(value: object) -> None:
    if not isinstance(value, bool):
        raise RequestError(TypeError, f"must be True or False, got {short_repr(value)}", "products")
    try:
        value and import_module("sympy")
    except ImportError:
        raise RequestError(ImportError, "products=True needs SymPy: pip install sympy") from None


def tile_dims(dims: Dims, repeats: Dims, products: bool = False) -> Dims:
    """The dimensions of the tiling: each dimension times its repeat."""
    result = tuple(multiply(dim, repeat, products) for dim, repeat in zip(dims, repeats, strict=True))
    for axis, size in enumerate(result):
        if isinstance(size, int) and size > INT64_MAX:
            factors = [str(dims[axis])[:80], str(repeats[axis])[:80]]
            raise RequestError(ValueError, f"axis {axis} overflows int64: {' * '.join(factors)}")
    return result


def match_repeats(shape: Dims | None, length: Dim, counts: Dims | None) -> tuple[Dims, Dims] | None:
    """The dimensions of shape and repeats, in a dialect with one repeat for each axis; None for an unknown rank.

    >>> match_repeats(None, 2, None), match_repeats(("N",), None, None)
    (((None, None), (None, None)), (('N',), (None,)))
    """
    if shape is None:
        if not isinstance(length, int):
            return None
        shape = (None,) * length  # the length of the repeats is the rank
    elif isinstance(length, int):
        check_count(length, len(shape))
    return shape, (None,) * len(shape) if counts is None else counts


def as_dim(value: Any, argument: str, position: int, intervals: bool = False, low: int = 0) -> Dim | Range:
    """`value` as a dimension or a repeat; `low` is the smallest legal number."""

    def dim_error(kind: type[Exception], expected: str) -> RequestError:
        return RequestError(kind, f"item {position} must be {expected}, got {short_repr(value)}", argument)

    if value is None:
        return None
    if isinstance(value, str):
        if not value:
            raise dim_error(ValueError, "a non-empty string for a symbol (None means unknown)")
        return value
    if intervals and hasattr(type(value), "get_min_length"):  # openvino.Dimension
        least, most = value.get_min_length(), value.get_max_length()
        return make_range(least, None if most < 0 else most)
    if intervals and isinstance(value, tuple):
        if len(value) != 2:
            raise dim_error(ValueError, "(low, high) for an interval")
        first, last = (as_dim(end, argument, position, low=low) for end in value)
        if not isinstance(first, int) or not isinstance(last, int | None):
            raise dim_error(TypeError, "(int, int) or (int, None) for an interval")
        if last is not None and last < first:
            raise dim_error(ValueError, "(low, high) with low <= high for an interval")
        return make_range(first, last)
    if type_name(value) == "SymbolicDim":  # onnx_ir's
        return as_dim(value.value, argument, position)
    try:
        number = read_item(value, argument, position)
    except RequestError as error:
        if error.kind is not TypeError or argument == "repeats":  # else the hint would be lost
            raise
        kinds = "an int, a str, None or (low, high)" if intervals else "an int, a str or None"
        raise dim_error(TypeError, kinds) from None
    if number > INT64_MAX or number < INT64_MIN:
        raise dim_error(ValueError, "within int64")
    if number < low:
        raise dim_error(ValueError, f"{low} or more, or None if unknown")
    return number


def as_plain_shape(value: Any, intervals: bool) -> Any:
    """A shape object of ONNX or OpenVINO as a list of dimensions, or None; any other value as it is."""
    if intervals and hasattr(type(value), "get_dimension"):  # openvino.PartialShape
        # By index: OpenVINO ends an iteration with a C++ exception, which takes as long as the whole loop.
        return None if value.rank.is_dynamic else [value[k] for k in range(len(value))]
    if type_name(value) == "TensorShapeProto":  # a dimension has a value, a name, or neither
        return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in value.dim]
    return value


def as_shape(value: Any, argument: str, *, intervals: bool = False) -> Dims | None:
    """The caller's shape as a tuple of dimensions; None for an unknown rank.

    >>> as_shape([2, (1, None), "N"], "data_shape", intervals=True)
    (2, (1, None), 'N')
    """
    value = as_plain_shape(value, intervals)
    if value is None:
        return None
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("a text has no dimensions")
        items = iter(value)
    except TypeError as reason:  # a 0-d array has __iter__, but raises
        pass_on(reason)
        what = f"must be a tuple of dimensions, or None if unknown, got {type_name(value)}"
        raise RequestError(TypeError, what, argument) from None
    return as_dims(items, argument, intervals)


def as_dims(items: Iterable[Any], argument: str, intervals: bool, low: int = 0) -> Dims:
    return tuple(as_dim(item, argument, k, intervals, low) for k, item in enumerate(draw_items(items, argument)))


def as_repeats_dims(
    repeats: Any, repeats_shape: Any, allowed: Types = INTEGERS, *, intervals: bool = False, low: int = 0
) -> tuple[Any, Dims | None]:
    """The length and the entries of a repeats tensor, as far as they are known. The two arguments must agree."""
    length = None
    lengths = as_shape(repeats_shape, "repeats_shape", intervals=intervals)
    if lengths is not None:
        if len(lengths) != 1:
            raise RequestError(ValueError, f"must have 1 entry, has {len(lengths)}", "repeats_shape")
        length = lengths[0]
    least, most = get_bounds(length)
    check_length(least, "repeats")
    repeats = as_plain_shape(repeats, intervals)
    if repeats is None:
        return length, () if length == 0 else None
    if isinstance(repeats, (list, tuple)):
        entries = as_dims(repeats, "repeats", intervals, low)
    else:
        entries = as_dims(as_repeats(repeats, allowed), "repeats", False, low)
    if len(entries) < least or (most is not None and len(entries) > most):
        raise RequestError(ValueError, f"has length {len(entries)}, which contradicts repeats_shape", "repeats")
    return len(entries), entries
