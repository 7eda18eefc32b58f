"""ONNX Tile, in every version, for onnx's own reference evaluator: ``ReferenceEvaluator(model, new_ops=OPS)``.

The evaluator's own Tile is `numpy.tile`. It cannot run Tile-1, and accepts repeats that the standard forbids: of a
length other than the input's rank, or of a type other than int64.

The evaluator uses `new_ops` in the model's graph and the subgraphs of If, Loop and Scan, but not in the model's
functions. `TileEvaluator` uses them there too, each by the opset of its function.
"""

from __future__ import annotations

# mypy: allow-untyped-calls
from typing import Any

from numpy.typing import NDArray
from onnx import NodeProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tilecore.onnx import for_opset, tile_1

__all__ = ["OPS", "Tile", "TileEvaluator"]
__dir__ = __all__.copy


class Tile(OpRun):
    """The Tile of a node, by the opset of its model or function.

    >>> import numpy as np
    >>> Tile.eval(np.array([[1, 2, 3]]), np.array([2, 1]))      # by itself: the newest opset
    array([[1, 2, 3],
           [1, 2, 3]])

    Raises
    ------
    TypeError, ValueError, MemoryError
        As the functions of `tilecore.onnx`. A node with a wrong number of inputs is a ValueError before anything
        runs.

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


class TileEvaluator(ReferenceEvaluator):
    """The reference evaluator with `OPS` everywhere, the model's functions included.

    >>> import numpy as np
    >>> from onnx.parser import parse_model
    >>> model = parse_model('''<ir_version: 8, opset_import: ["": 21, "mine": 1]>
    ... example (float[N] x, int64[1] n) => (float[M] y) { y = mine.Again (x, n) }
    ... <domain: "mine", opset_import: ["": 6]>
    ... Again (x, n) => (y) { y = Tile(x, n) }''')
    >>> x, repeats = np.ones(3, "float32"), np.array([2])
    >>> TileEvaluator(model).run(None, {"x": x, "n": repeats})[0].shape
    (6,)

    Parameters
    ----------
    As those of `onnx.reference.ReferenceEvaluator`. If `new_ops` has a Tile too, that is used instead of `OPS`.

    Source: ONNX, FunctionProto: the opsets of a function's nodes are the function's.
    """

    def __init__(
        self,
        proto: Any,
        opsets: dict[str, int] | None = None,
        functions: list[Any] | None = None,
        verbose: int = 0,
        new_ops: list[type[OpRun]] | None = None,
        **options: Any,
    ) -> None:
        # The evaluator makes the evaluators of functions and subgraphs itself, as instances of its own class.
        super().__init__(proto, opsets, functions, verbose, [*(new_ops or ()), *OPS], **options)
