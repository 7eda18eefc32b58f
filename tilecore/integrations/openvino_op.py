"""OpenVINO Tile-1 as a custom operation, computed by tilecore.

Use it if the built-in operation fails: the CPU plugin's Tile is wrong for some tilings with more or fewer repeats than
axes, and refuses empty repeats. `openvino.Model.evaluate`, without a plugin, crashes on some empty data.

The CPU plugin passes int64 and uint64 to every operation as int32, and float64 as float32. So repeats above 2**31 - 1
count as 2**31 - 1, as for its own Tile, and `replace_tile` refuses such constants. `openvino.Model.evaluate` keeps the
element types.
"""

from __future__ import annotations

# mypy: disable-error-code=import-untyped, allow-subclassing-any, allow-untyped-calls
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from openvino import Dimension, DiscreteTypeInfo, Model, Node, Op, Output, PartialShape, Tensor, Type, opset1
from openvino.op import Constant
from openvino.utils import replace_node

import tilecore
from tilecore._core.request.arguments import read_array
from tilecore._core.request.errors import RequestError, format_error, pass_on, short_repr, type_name
from tilecore._dialects.dims import get_bounds
from tilecore._dialects.tensors import as_repeats
from tilecore.openvino import DIALECT, infer_shape

__all__ = ["Tile", "replace_tile"]
__dir__ = __all__.copy

VERSION = DIALECT.version()
INT32_MAX = 2**31 - 1


class Tile(Op):
    """A node that tiles `data` by `repeats`, as `tilecore.openvino.tile` does.

    >>> import numpy as np
    >>> from openvino import Dimension, opset1
    >>> data = opset1.parameter([Dimension(1, 5), 3], np.float32)
    >>> Tile(data, opset1.constant([2, 2, 2])).output(0).partial_shape
    <PartialShape: [2,2..10,6]>

    Parameters
    ----------
    data : node or output of any shape, or array_like
        Of any element type of whole bytes, strings included. An array becomes a Constant.
    repeats : node or output, shape (n,), or list, tuple or array of ints
        Of any integer type. Shape inference uses the values of a Constant, and the bounds that OpenVINO finds for
        values computed from shapes.

    Raises
    ------
    TypeError
        Repeats of another element type; data of a type that OpenVINO lacks, or of less than 8 bits per element.
    ValueError
        Repeats that are not 1-D, or too large for int64.

    Notes
    -----
    OpenVINO's own calls turn these errors into its RuntimeError, with the same text. OpenVINO allocates the result, so
    `tilecore.set_max_bytes` limits only strings, which are copied.

    A model's file stores this operation under the name "TilecoreTile". Call `core.add_extension(Tile)` before you
    read such a file.

    Source: OpenVINO Tile-1.
    """

    class_type_info = DiscreteTypeInfo("TilecoreTile", "extension")  # under the name "Tile" a plugin would run its own

    def __init__(self, *inputs: Node | Output | ArrayLike) -> None:
        try:
            nodes = tuple(_as_node(value, position) for position, value in enumerate(inputs))
        except RequestError as error:
            raise format_error(error, VERSION.name, None, VERSION.names) from error.__cause__
        super().__init__(self, nodes)

    @staticmethod
    def get_type_info() -> DiscreteTypeInfo:
        return Tile.class_type_info

    def validate_and_infer_types(self) -> None:
        name = VERSION.name
        if self.get_input_size() != 2:
            raise ValueError(f"{name}: {self.get_input_size()} inputs, expected data and repeats")
        kind, repeats_kind = (self.get_input_element_type(i) for i in (0, 1))
        if kind.is_static() and kind.bitwidth % 8:
            raise TypeError(f"{name}: data of element type {kind.to_string()}, expected a type of whole bytes")
        if repeats_kind.is_static() and (not repeats_kind.is_integral_number() or repeats_kind.bitwidth % 8):
            raise TypeError(f"{name}: repeats of element type {repeats_kind.to_string()}, expected an integer type")
        self.set_output_type(0, kind, _infer_shape(self.input_value(0), self.input_value(1)))

    def clone_with_new_inputs(self, new_inputs: list[Output]) -> Tile:
        return Tile(*new_inputs)

    def has_evaluate(self) -> bool:
        return True

    def evaluate(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> bool:
        (target,), (data, repeats) = outputs, inputs
        strings = data.element_type == Type.string  # NumPy cannot view these in place, so they are copied
        source = _read_strings(data) if strings else data.data
        try:
            counts = VERSION.read_counts(source, repeats.data)
            shape = tilecore.output_shape(source.shape, counts)
        except (RequestError, TypeError, ValueError, MemoryError) as error:
            raise format_error(error, VERSION.name, source, VERSION.names, repeats=repeats.data) from error.__cause__
        if target.shape != shape:
            target.shape = shape
        if strings:
            target.bytes_data = tilecore.tile(source, counts)
        else:
            tilecore.tile(source, counts, target.data)
        return True


def _read_strings(tensor: Tensor) -> NDArray[np.bytes_]:
    """A copy of the strings. `bytes_data` fails if all are empty; `str_data` replaces bytes that are not UTF-8."""
    if tensor.size:
        array: NDArray[np.bytes_] = tensor.bytes_data
        if array.itemsize > 1 or (tensor.str_data != "").any():
            return array
    return np.zeros(tuple(tensor.shape), "S1")


def _as_node(value: Any, position: int) -> Node | Output:
    """A node for an input; any other value becomes a Constant, as in OpenVINO's own functions."""
    if isinstance(value, (Node, Output)):
        return value
    if position == 0:
        array = read_array(value, "data")
        try:  # Constant(array) would read strings, and the other byte order, as they lie in memory
            return Constant(Tensor(array.astype(array.dtype.newbyteorder("="), "C", copy=False)))
        # OpenVINO 2025.0 raises an IndexError, NumPy a TypeError: a StringDType has no byte order.
        except (IndexError, RuntimeError, TypeError) as reason:
            pass_on(reason)
            what = f"has dtype {short_repr(array.dtype)}, which OpenVINO lacks"
            raise RequestError(TypeError, what, "data") from reason
    repeats = as_repeats(value)
    try:
        return Constant(np.array(repeats, np.int64))
    except OverflowError as reason:
        pass_on(reason)
        raise RequestError(ValueError, f"must fit int64, got {short_repr(repeats)}", "repeats") from reason


def _infer_shape(data: Output, repeats: Output) -> PartialShape:
    """The shape by a Constant's values. For other repeats OpenVINO's Tile, which may know their bounds, infers it."""
    shape, node, entries = data.get_partial_shape(), repeats.get_node(), None
    if isinstance(node, Constant):
        entries = node.data
    elif repeats.get_element_type() != Type.u64:  # Tile takes a large uint64 for a negative number
        try:
            return opset1.tile(data, repeats).output(0).get_partial_shape()
        except RuntimeError as reason:  # an entry may be negative
            pass_on(reason)
    dims = infer_shape(shape, entries, repeats_shape=repeats.get_partial_shape())
    if dims is None:
        return PartialShape.dynamic()
    result = [Dimension(low, -1 if high is None else high) for low, high in map(get_bounds, dims)]
    if entries is not None:
        for axis in range(-min(len(entries), len(shape)), 0):
            if entries[axis] == 1:
                result[axis] = shape[axis]  # with its symbol, if it has one
    return PartialShape(result)


def replace_tile(model: Model) -> int:
    """Replace every built-in Tile of a model with `Tile`, and return how many were replaced.

    >>> import numpy as np
    >>> from openvino import Core, Model, opset1
    >>> data = opset1.parameter([-1, 3], np.float32)
    >>> model = Model([opset1.tile(data, [2, 1])], [data])      # or Core().read_model("model.xml")
    >>> replace_tile(model)
    1
    >>> Core().compile_model(model, "CPU")(np.ones((2, 3), np.float32))[0].shape
    (4, 3)

    Parameters
    ----------
    model : openvino.Model
        Changed in place, with the bodies of its If, Loop and TensorIterator. Nodes and tensors keep
        their names and runtime information. Nodes of types below 8 bits, such as i4 and u4, stay as they are.

    Raises
    ------
    TypeError
        An argument that is not a model: a compiled one cannot be changed.
    ValueError
        Constant repeats above 2**31 - 1. The model stays as it is.

    Source: OpenVINO Tile-1, and openvino.utils.replace_node.
    """
    if not hasattr(model, "get_ordered_ops"):
        what = f"expected an openvino.Model, as from Core().read_model, got {type_name(model)}"
        raise TypeError(f"replace_tile: {what}")
    replaced = [(node, Tile(*node.input_values())) for node in _find_built_in(model)]
    for old, _ in replaced:
        repeats = old.input_value(1).get_node()
        if isinstance(repeats, Constant) and repeats.data.max(initial=0) > INT32_MAX:
            what = f"{old.get_friendly_name()} has repeats {repeats.data.tolist()}, but the CPU plugin holds int32 only"
            raise ValueError(f"replace_tile: {what}")
    for old, new in replaced:
        new.set_friendly_name(old.get_friendly_name())
        for key, item in old.get_rt_info().items():  # such as the affinity that HETERO reads
            if isinstance(value := item.value, (str, int)):  # Python can set no others
                new.get_rt_info()[key] = value
        replace_node(old, new)
    model.validate_nodes_and_infer_types()
    return len(replaced)


def _find_built_in(model: Model) -> Iterator[Node]:
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        if kind == "Tile" and not any(value.get_element_type().bitwidth % 8 for value in node.input_values()):
            yield node
        elif kind == "If":
            yield from _find_built_in(node.get_then_body())
            yield from _find_built_in(node.get_else_body())
        elif kind in ("Loop", "TensorIterator"):
            yield from _find_built_in(node.get_function())
