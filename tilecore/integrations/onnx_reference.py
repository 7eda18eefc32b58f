"""ONNX Tile, in every version, for onnx's own reference evaluator: ``ReferenceEvaluator(model, new_ops=OPS)``.

The evaluator's own Tile is `numpy.tile`. It cannot run Tile-1, and accepts repeats that the standard forbids: of a
length other than the input's rank, or of a type other than int64.

The evaluator uses `new_ops` in the model's graph and the subgraphs of If, Loop and Scan, but not in the model's
functions: put these into the graph first, by `onnx.inliner.inline_local_functions`.
"""

from __future__ import annotations

# mypy: allow-untyped-calls
from typing import Any

from numpy.typing import NDArray
from onnx import NodeProto
from onnx.reference.op_run import OpRun

from tilecore.onnx import for_opset, tile_1

__all__ = ["OPS", "Tile"]
__dir__ = __all__.copy


class Tile(OpRun):
    """The Tile of a node, by the opset of its model.

    >>> import numpy as np
    >>> Tile.eval(np.array([[1, 2, 3]]), np.array([2, 1]))      # by itself: the newest opset
    array([[1, 2, 3],
           [1, 2, 3]])

    Raises
    ------
    TypeError, ValueError, MemoryError
        As the functions of `tilecore.onnx`. A wrong number of inputs is a ValueError before anything runs.

    Source: ONNX Tile-1, Tile-6 and Tile-13.
    """

    op_domain = ""  # the evaluator finds a class by the operator's name alone, so one class serves all versions

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any], schema: Any = None) -> None:
        super().__init__(onnx_node, run_params, schema)
        opset = run_params["opsets"][self.op_domain]
        self._tile = for_opset(opset)
        names = ("input", "tiles", "axis") if self._tile is tile_1 else ("input", "repeats")
        if len(onnx_node.input) != len(names):  # a third input would be passed as `out`
            given = f"{len(onnx_node.input)} inputs, {list(onnx_node.input)}"
            raise ValueError(f"ONNX Tile of opset {opset}: {given}; expected {', '.join(names)}")
        if onnx_node.attribute:
            given = ", ".join(attribute.name for attribute in onnx_node.attribute)
            raise ValueError(f"ONNX Tile of opset {opset}: expected no attributes, got {given}")

    def run(self, *inputs: Any, **options: Any) -> Any:
        try:
            return super().run(*inputs, **options)
        except TypeError as error:  # "Issues with types ...", which OpRun makes of the one that `_run` raises
            own = error.__cause__ or error
            raise own from own.__cause__

    def _run(self, *inputs: NDArray[Any]) -> tuple[NDArray[Any]]:
        return (self._tile(*inputs),)


#: The list for ``ReferenceEvaluator(model, new_ops=OPS)``.
OPS: list[type[OpRun]] = [Tile]
