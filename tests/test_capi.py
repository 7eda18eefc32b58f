"""The C functions as Numba and ctypes find them: by the name of the module and of the function."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilecore import capi

pytestmark = pytest.mark.quick

README = Path(__file__).parent.parent / "README.md"
POINTER, INT, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_ssize_t


def address(name):
    """As in the README, which is not there where the package alone is tested."""
    api = ctypes.pythonapi
    of_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    of_pointer = ctypes.PYFUNCTYPE(POINTER, ctypes.py_object, ctypes.c_char_p)
    capsule = capi.__pyx_capi__[name]
    return of_pointer(("PyCapsule_GetPointer", api))(capsule, of_name(capsule))


plan_new = ctypes.PYFUNCTYPE(POINTER, INT, POINTER, POINTER, SIZE)(address("tilecore_plan_new"))
plan_free = ctypes.CFUNCTYPE(None, POINTER)(address("tilecore_plan_free"))
execute = ctypes.CFUNCTYPE(None, POINTER, POINTER, POINTER, POINTER, POINTER, INT)(
    address("tilecore_plan_execute_strided")
)
execute_region = ctypes.CFUNCTYPE(
    None, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, INT
)(address("tilecore_plan_execute_region_strided"))


class Plan:
    """Of an array's shape; it owns what tilecore_plan_new returned."""

    def __init__(self, shape, reps, itemsize):
        self.pointer = plan_new(len(shape), counts(shape), counts(reps), itemsize)

    def __enter__(self):
        return self.pointer

    def __exit__(self, *exception):
        plan_free(self.pointer)


def counts(values):
    return (SIZE * max(1, len(values)))(*values)


def test_errors_are_raised():
    with pytest.raises(ValueError, match="tilecore_plan_new: repeats must not be negative, got -1"):
        plan_new(1, counts([2]), counts([-1]), 4)


def reverse(x):
    return x[(..., *[slice(None, None, -1)] * x.ndim)]


LAYOUTS = {
    "C": lambda x: x.copy(),
    "Fortran": lambda x: x.copy(order="F"),
    "reversed": lambda x: reverse(reverse(x).copy()),
    "steps": lambda x: np.repeat(x, 2, -1)[..., ::2] if x.ndim else x.copy(),
    "a channel": lambda x: np.stack([x, x, x], -1)[..., 1],
    "moved": lambda x: np.moveaxis(np.moveaxis(x, -1, 0).copy(), 0, -1) if x.ndim else x.copy(),
}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=4),
    st.sampled_from(["u1", "i2", "f4", "f8", "c16", "S3", "V40"]),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from(sorted(LAYOUTS)),
    st.tuples(st.booleans(), st.booleans()),
    st.data(),
)
def test_strides(oracle, axes, dtype, of_source, of_target, null, data):
    """All of it and a region, between any two layouts; nothing beside the target is written."""
    shape, reps = [n for n, _ in axes], [r for _, r in axes]
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    x = np.arange(size, dtype="u4").astype("u1").tobytes()
    x = LAYOUTS[of_source](np.frombuffer(x, dtype).reshape(shape))
    want = oracle(x, reps)
    bounds = [sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2))) for n in want.shape]
    start, stop = [low for low, _ in bounds], [high for _, high in bounds]
    part = want[tuple(slice(*two) for two in bounds)]

    def strides(array, is_null):
        return None if is_null and array.flags.c_contiguous else counts(array.strides)

    with Plan(shape, reps, x.itemsize) as plan:
        for wanted in (want, part):
            y = LAYOUTS[of_target](np.zeros_like(wanted, order="C"))
            base = y if y.base is None else y.base
            before = base.tobytes()
            ends = (plan, x.ctypes.data, strides(x, null[0]), y.ctypes.data, strides(y, null[1]))
            if wanted is want:
                execute(*ends, 1)
            else:
                execute_region(*ends, counts(start), counts(stop), 1)
            np.testing.assert_array_equal(y, wanted)
            y[...] = np.zeros((), dtype)
            assert base.tobytes() == before


def test_a_large_result_by_several_threads():
    gray = np.arange(12_000_000, dtype="u4").astype("u1").reshape(3000, 4000)[:, ::-1]
    colour = np.zeros((3000, 8000, 3), "u1")
    with Plan(gray.shape, (1, 2), 1) as plan:
        channel = colour[:, :, 1]
        ends = (gray.ctypes.data, counts(gray.strides))
        execute(plan, *ends, channel.ctypes.data, counts(channel.strides), 2)
    assert (channel == np.tile(gray, 2)).all()
    assert not colour[:, :, ::2].any()


def readmes(name):
    text = README.read_text(encoding="utf-8")
    return re.search(rf"^```python\n(# {name}\n.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]


@pytest.mark.tree
def test_the_readmes_ctypes():
    names = {}
    exec(readmes("in_ctypes.py"), names)
    assert names["address"]("tilecore_plan_nbytes") == address("tilecore_plan_nbytes")


@pytest.mark.tree
@pytest.mark.process
def test_the_readmes_numba(tmp_path):
    """In a process of its own, for Numba warns and stays."""
    pytest.importorskip("numba", exc_type=ImportError)
    (tmp_path / "in_numba.py").write_text(readmes("in_numba.py"), encoding="utf-8")
    use = """
import numpy as np
from in_numba import gray_to_rgb, plan_new
images = np.arange(5 * 6 * 7, dtype="f4").reshape(5, 6, 7, 1)
for x in (images, images[::2, ::-1], images.T.copy().T, images[:0]):
    assert (gray_to_rgb(x) == np.tile(x, (1, 1, 1, 3))).all()
try:
    plan_new(1, np.array([2]).ctypes.data, np.array([-1]).ctypes.data, 4)
except ValueError as error:
    assert str(error).startswith("tilecore_plan_new: ")
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", use], cwd=tmp_path, check=True, timeout=300)
