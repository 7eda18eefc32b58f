"""Who is timed. Each case is a function prepare(x, reps) that returns a call that tiles once.

Preparing imports what the case needs (`ImportError` if it is not installed) and does all that a user
does once. Every peer gets the same array, keeps its default number of threads, and makes a result of
its own; the cases "out" write to an array that is there already.
"""

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

Case = Callable[[np.ndarray, tuple[int, ...]], Callable[[], Any]]


def warm_output(x: np.ndarray, reps: tuple[int, ...]) -> np.ndarray:
    """An array for the result, in memory that has been written to; cases of one workload share it."""
    return _ones(tuple(n * r for n, r in zip(x.shape, reps, strict=True)), x.dtype)


@lru_cache(maxsize=1)
def _ones(shape, dtype):
    return np.ones(shape, dtype)


# ---------------------------------------------------------------- tilecore


def tilecore(x, reps, **options):
    from tilecore import tile

    return partial(tile, x, reps, **options)


def tilecore_out(x, reps, **options):
    return tilecore(x, reps, out=warm_output(x, reps), **options)


# ---------------------------------------------------------------- peers


def numpy(x, reps):
    return partial(np.tile, x, reps)


def torch(x, reps):
    import torch

    return partial(torch.tile, torch.from_numpy(x), reps)


def onnxruntime(x, reps):
    import onnxruntime
    from onnx import helper, numpy_helper

    kind, tile = helper.np_dtype_to_tensor_dtype(x.dtype), helper.make_node("Tile", ["x", "repeats"], ["y"])
    ends = [helper.make_tensor_value_info(name, kind, shape) for name, shape in (("x", x.shape), ("y", None))]
    counts = numpy_helper.from_array(np.array(reps, np.int64), "repeats")
    graph = helper.make_graph([tile], "tile", ends[:1], ends[1:], [counts])
    # Tile-13 and the file format of its time: every later runtime reads them.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def openvino(x, reps):
    import openvino
    from openvino import opset1

    parameter = opset1.parameter(x.shape, x.dtype)
    model = openvino.Model([opset1.tile(parameter, np.array(reps, np.int64))], [parameter])
    # Otherwise float32 is rounded to bfloat16 on some processors: less work, and other values.
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(model, "CPU", exact).create_infer_request()
    return lambda: request.infer([x], share_inputs=True)[0]


def einops(x, reps):
    from einops import repeat

    names = [f"n{axis}" for axis in range(x.ndim)]
    counts = {f"r{axis}": count for axis, count in enumerate(reps) if count > 1}
    result = [f"(r{axis} n{axis})" if f"r{axis}" in counts else name for axis, name in enumerate(names)]
    return partial(repeat, x, f"{' '.join(names)} -> {' '.join(result)}", **counts)


def jax(x, reps):
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)  # float64 stays float64
    tile = jax.jit(lambda a: jnp.tile(a, reps))
    a = jnp.asarray(x)
    return lambda: tile(a).block_until_ready()


def tensorflow(x, reps):
    import tensorflow

    tensor = tensorflow.constant(x)
    return partial(tensorflow.tile, tensor, reps)


# ---------------------------------------------------------------- bounds: they tile nothing


def memset(x, reps, threads=1):
    """In equal parts, one for each thread."""
    out = warm_output(x, reps)
    ends = [out.nbytes * n // threads for n in range(threads + 1)]
    first, *others = [(out.ctypes.data + a, 1, b - a) for a, b in pairwise(ends)]
    if not others:
        return lambda: ctypes.memset(*first) and out  # the memory lives as long as the call
    pool = ThreadPoolExecutor(len(others))

    def call():
        waiting = [pool.submit(ctypes.memset, *part) for part in others]
        ctypes.memset(*first)
        wait(waiting)
        return out

    return call


def memcpy(x, reps):
    out = warm_output(x, reps)
    source = out.copy()
    to, at = out.ctypes.data, source.ctypes.data
    return lambda: ctypes.memmove(to, at, min(out.nbytes, source.nbytes))


TILECORE: dict[str, Case] = {
    "tilecore": tilecore,
    "tilecore 1 thread": partial(tilecore, threads=1),
    "tilecore out": tilecore_out,
    "tilecore out 1 thread": partial(tilecore_out, threads=1),
    "tilecore out 2 threads": partial(tilecore_out, threads=2),
}
PEERS: dict[str, Case] = {"numpy": numpy, "einops": einops, "torch": torch, "onnxruntime": onnxruntime}
PEERS |= {"openvino": openvino, "jax": jax, "tensorflow": tensorflow}
BOUNDS: dict[str, Case] = {"memset": memset, "memset 2 threads": partial(memset, threads=2), "memcpy": memcpy}
