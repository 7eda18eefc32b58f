"""Each Python that `tilecore run` starts executes this at its start, and so do its child processes.

This folder is first in their PYTHONPATH. Once such a Python has imported NumPy, it imports tilecore, and `numpy.tile`
is replaced. Until then nothing else is imported. A Python without tilecore stays as it is, Python 2 too.
"""

# mypy: ignore-errors
import os
import sys

sys.path.remove(os.path.dirname(__file__))
this = sys.modules.pop("sitecustomize")  # Python 2 empties a module that nothing holds


class AfterImports:
    """A finder of modules. It finds them by the others, and adds a step to the imports of NumPy and tilecore."""

    def find_spec(self, name, path=None, target=None):
        if name not in ("numpy", "tilecore"):
            return None
        later = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
        specs = (finder.find_spec(name, path, target) for finder in later if hasattr(finder, "find_spec"))
        spec = next(filter(None, specs), None)
        loader = spec and spec.loader

        def exec_module(module):
            del loader.exec_module  # the method of its class is there again
            loader.exec_module(module)
            if name == "tilecore":
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                replace()
            elif "tilecore" not in sys.modules:  # else the program imports tilecore, which imports NumPy
                import_tilecore()

        if hasattr(loader, "exec_module") and "exec_module" not in getattr(loader, "__dict__", ["exec_module"]):
            loader.exec_module = exec_module
        return spec


def import_tilecore():
    try:
        import tilecore  # noqa: F401
    except (AttributeError, ImportError, RuntimeError, ValueError) as error:  # a program's own `numpy`, for instance
        if getattr(error, "name", "") != "tilecore":
            refuse(error)


def replace():
    try:
        tilecore = sys.modules["tilecore"]
        vars(tilecore)["_replacement"] = tilecore.replace_numpy_tile()  # for as long as the module lives
    except RuntimeError as error:
        refuse(error)


def refuse(error):
    if sys.stderr:
        sys.stderr.write("tilecore: %s; the program runs with NumPy's own\n" % error)  # noqa: UP031


if "TILECORE_PROFILE" in os.environ:
    from tilecore._cli.profile import begin

    begin(os.environ.pop("TILECORE_PROFILE"))
elif sys.version_info >= (3, 11):  # noqa: UP036
    sys.meta_path.insert(0, AfterImports())
    if "numpy" in sys.modules:
        import_tilecore()
__import__("sitecustomize")  # the user's own; if there is none, Python ignores the error
