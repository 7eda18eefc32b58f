"""A Python that `tilecore run`, `compare` or `profile` starts executes this first; its children do, but for `profile`.

This folder is first in their PYTHONPATH. `profile` begins at once. Otherwise, a Python that has imported NumPy then
imports tilecore, and `numpy.tile` is replaced. A child that lacks tilecore stays as it is, even Python 2.
"""

# mypy: ignore-errors
import os
import sys

sys.path.remove(os.path.dirname(__file__))
this = sys.modules.pop("sitecustomize")  # Python 2 empties a module that nothing holds
told = getattr(sys, "_xoptions", {}).pop("tilecore", None)  # by run.py: True, or a profile's file; None in children


class AfterImports:
    """A finder of modules: the other finders find them, and it adds a step to the imports of NumPy and tilecore."""

    def find_spec(self, name, path=None, target=None):
        if name not in ("numpy", "tilecore"):
            return None
        later = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
        specs = (finder.find_spec(name, path, target) for finder in later if hasattr(finder, "find_spec"))
        spec = next(filter(None, specs), None)
        loader = spec and spec.loader

        class Loader:  # `loader` itself may serve other modules too, or take no attribute
            def __getattr__(_, attribute):
                return getattr(loader, attribute)

            def exec_module(_, module):
                spec.loader = module.__loader__ = loader
                loader.exec_module(module)
                if name == "tilecore":
                    if self in sys.meta_path:
                        sys.meta_path.remove(self)
                    replace(module)
                elif "tilecore" not in sys.modules:  # else the program imports tilecore, which imports NumPy
                    import_tilecore()

        if hasattr(loader, "exec_module"):
            spec.loader = Loader()
        return spec


def import_tilecore():
    try:
        import tilecore  # noqa: F401
    except Exception as error:  # a program's own `numpy`, for instance
        if told or getattr(error, "name", "") != "tilecore":
            refuse(error)


def replace(tilecore):
    try:
        if "_replacement" not in vars(tilecore):  # else `loader` has called another Loader
            vars(tilecore)["_replacement"] = tilecore.replace_numpy_tile()  # for as long as the module lives
    except RuntimeError as error:
        refuse(error)


def refuse(error):
    """Print why. What a signal handler raised is raised again: its traceback ends in code of the program."""
    last = error.__traceback__
    while last.tb_next:
        last = last.tb_next
    name = str(last.tb_frame.f_globals.get("__name__")).partition(".")[0]
    if name not in ("numpy", "tilecore", "sitecustomize", "importlib", "_frozen_importlib"):
        raise error
    if sys.stderr:
        sys.stderr.write("tilecore: %s; the program runs with NumPy's own\n" % error)  # noqa: UP031


if isinstance(told, str):
    try:
        from tilecore._cli.profile import begin
    except Exception as error:
        if sys.stderr:
            sys.stderr.write("tilecore: %s\n" % error)  # noqa: UP031
        os._exit(2)
    begin(told)
elif sys.version_info >= (3, 11):  # noqa: UP036
    sys.meta_path.insert(0, AfterImports())
    if "numpy" in sys.modules:
        import_tilecore()
try:
    __import__("sitecustomize")  # the user's own; if there is none, Python ignores the error
finally:
    sys.modules.setdefault("sitecustomize", this)  # `importlib.reload`, by another's sitecustomize, looks for it
