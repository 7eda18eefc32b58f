"""Each Python that `tilecore run` starts executes this at its start, and so do its child processes.

This folder is first in their PYTHONPATH. Once such a Python has imported NumPy, `numpy.tile` is replaced; until then
nothing else is imported. A Python without tilecore stays as it is.
"""

# mypy: ignore-errors
import os
import sys

sys.path.remove(os.path.dirname(__file__))
del sys.modules["sitecustomize"]


class AfterNumPy:
    """A finder of modules. It finds them by the others, and adds a step to the import of NumPy."""

    def find_spec(self, name, path=None, target=None):
        if name != "numpy":
            return None
        others = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        loader = spec and spec.loader

        def exec_module(module):
            del loader.exec_module  # the method of its class is there again
            loader.exec_module(module)
            sys.meta_path.remove(self)
            replace()

        if hasattr(loader, "exec_module"):
            loader.exec_module = exec_module
        return spec


def replace():
    try:
        # In `import tilecore`, which imports NumPy first, the rest is not ready.
        from tilecore._core.numpy_tile import replace_numpy_tile

        vars(sys.modules["tilecore._core.numpy_tile"])["_replacement"] = replace_numpy_tile()  # as long as it lives
    except (ImportError, RuntimeError) as error:
        if getattr(error, "name", "") != "tilecore" and sys.stderr:
            sys.stderr.write(f"tilecore: {error}; the program runs with NumPy's own\n")


if "TILECORE_PROFILE" in os.environ:
    from tilecore._cli.profile import begin

    begin(os.environ.pop("TILECORE_PROFILE"))
elif "numpy" in sys.modules:
    replace()
else:
    sys.meta_path.insert(0, AfterNumPy())
__import__("sitecustomize")  # the user's own; if there is none, Python ignores the error
