"""The package imported again, and in other interpreters than the first."""

import sys

import numpy as np
import pytest

pytestmark = pytest.mark.process

START = """
import importlib
x = numpy.arange(6).reshape(2, 3)
first, numpys = tilecore, numpy.tile
def modules(): return [name for name in sys.modules if name.partition(".")[0] == "tilecore"]

def check(tilecore):
    for call in (tilecore.tile, tilecore.onnx.tile, tilecore.directml.tile):
        refuse(lambda: call(x, [-1, 2]), ValueError, "got -1 for axis 0")
    for chosen in (3, 2):
        tilecore.set_num_threads(chosen)
        tilecore.set_max_bytes(chosen * 2**20)
        tilecore.set_recycle_limit(chosen * 2**30)
        for other in (first, tilecore):
            assert other.get_num_threads() == chosen
            assert other.get_max_bytes() == chosen * 2**20
            assert other.get_recycle_limit() == chosen * 2**30
    refuse(lambda: tilecore.tile(numpy.zeros(2**18), 2), MemoryError)
    with tilecore.replace_numpy_tile():
        assert numpys(x, 2).flags.owndata
    assert numpy.tile is numpys and not numpys(x, 2).flags.owndata
"""


def test_imported_twice(program):
    """Test runners that isolate tests, and notebooks that reload, remove modules and import them again."""
    program("""
check(tilecore)
for name in modules(): del sys.modules[name]
second = importlib.import_module("tilecore")
assert second is not first
check(second)
check(first)
with second.replace_numpy_tile():
    for name in modules(): del sys.modules[name]
    third = importlib.import_module("tilecore")
    assert numpy.tile(x, 2).shape == (2, 6)
check(third)
""", TILECORE_NUM_THREADS="7")  # fmt: skip


def test_reloaded(program):
    """Each module is reloaded by itself."""
    program("""
for name in modules():
    importlib.reload(sys.modules[name])
    check(tilecore)
""")


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy refuses since 2.4")
@pytest.mark.parametrize("before", ["numpy", "tilecore"])
def test_an_interpreter_that_numpy_refuses(before, run, tmp_path):
    """The import fails there, because NumPy was imported here. So tilecore's must not begin before NumPy's."""
    code = f"""
import {before}, sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    problem = interpreters.run_string(interpreters.create("isolated"), "import tilecore")
    assert problem is not None and problem.type.__name__ == "ImportError", problem
else:
    import _xxsubinterpreters as interpreters
    try:
        interpreters.run_string(interpreters.create(isolated=False), "import tilecore")
    except interpreters.RunFailedError as error:
        assert "cannot load module more than once per process" in str(error)
import tilecore
print(tilecore.tile([1, 2], 2))
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path) == "[1 2 1 2]\n"


def test_threads_import_modules_while_another_imports_the_package(run, tmp_path):
    code = """
import importlib, numpy, sys, threading, time
modules = ["tilecore." + name for name in ("capi", "directml", "integrations", "onnx", "openvino")]
started = []
threading.excepthook = print
class Finder:
    def find_spec(name, path, target=None):
        if name == "tilecore._core.arrays":
            started.extend(threading.Thread(target=importlib.import_module, args=(name,)) for name in modules)
            for thread in started: thread.start()
            time.sleep(1)
sys.meta_path.insert(0, Finder)
import tilecore
tiled = *tilecore.onnx.tile([1], [2]), *tilecore.openvino.tile([1], [1])  # complete, though threads import them too
for thread in started: thread.join()
print({*modules} - {*sys.modules}, *tiled, len(started), tilecore.onnx is sys.modules["tilecore.onnx"])
"""
    done = run(sys.executable, "-c", code, cwd=tmp_path)
    assert done == "set() 1 1 1 5 True\n"


def test_beside_another_copy(program, tmp_path):
    """Of two copies, the first one that replaces `numpy.tile` has its place until its end."""
    program(f"""
import os, shutil
shutil.copytree(os.path.dirname(tilecore.__file__), {str(tmp_path / "copy" / "tilecore")!r})
for name in modules(): del sys.modules[name]
sys.path.insert(0, {str(tmp_path / "copy")!r})
with first.replace_numpy_tile():
    second = importlib.import_module("tilecore")
    assert second.__file__ != first.__file__
    for block in (second.replace_numpy_tile, second.profile().__enter__):
        refuse(block, RuntimeError, "another copy of tilecore has")
    assert numpy.tile(x, 2).flags.owndata
with second.replace_numpy_tile() as ours:
    refuse(first.replace_numpy_tile, RuntimeError, "another copy of tilecore has")
    ours.restore()
    with first.replace_numpy_tile(): assert numpy.tile(x, 2).flags.owndata
assert not numpy.tile(x, 2).flags.owndata
""")


@pytest.mark.parametrize("wrapper", ["wraps(numpys)(lambda *given: numpys(*given))", "Mock(side_effect=numpys)"])
def test_numpys_function_is_found_behind_another(wrapper, run, tmp_path):
    """A program had put the other one there before it imported tilecore."""
    code = f"""
import numpy
from functools import wraps
from unittest.mock import Mock
numpys = numpy.tile
numpy.tile = {wrapper}
import tilecore
x = numpy.zeros(3)
with tilecore.replace_numpy_tile(): print(numpys(x, 2).flags.owndata, numpy.tile(x, 2).flags.owndata)
print(numpys(x, 2).flags.owndata, numpy.tile is numpys)
"""
    assert run(sys.executable, "-c", code, cwd=tmp_path) == "True True\nFalse False\n"


def test_numpys_function_without_a_pointer(run, tmp_path):
    """The error is about that, whatever function has its name now."""
    code = """
import numpy
numpy.tile = numpy.lib._shape_base_impl.tile = numpy.tile.__wrapped__
import tilecore
numpy.tile = lambda A, reps: A
try: tilecore.replace_numpy_tile()
except RuntimeError as error: print(error)
"""
    told = "numpy.tile cannot be replaced: it is not called by a pointer of NumPy's\n"
    assert run(sys.executable, "-c", code, cwd=tmp_path) == told


END = """
import builtins, os, sys, numpy, tilecore
class AtEnd:
    def __init__(self, x):
        self.given = numpy.tile, x, x.view(type("Own", (numpy.ndarray,), {})), os.write
    def __del__(self):
        tile, x, own, write = self.given
        results = tile(x, 2), tile(x, reps=[2]), tile(A=[1, 2, 3], reps=2), tile(own, 2)
        write(1, b"%d " % sum(result.size for result in results))
replaced = tilecore.replace_numpy_tile()
for place in (builtins, numpy, tilecore, sys.modules["__main__"]): place.at_end = AtEnd(numpy.arange(3))
builtins.replaced = replaced  # to the end
"""


def test_the_end_of_python(run, tmp_path):
    """Objects that live longest call `numpy.tile` when modules have no names any more. (NumPy's own then fails.)"""
    assert {*run(sys.executable, "-c", END, cwd=tmp_path).split()} == {"24"}
