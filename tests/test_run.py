"""The commands `tilecore run` and `tilecore profile`: programs as Python runs them. test_profile.py has the table."""

import json
import os
import re
import shutil
import subprocess
import venv
from pathlib import Path
from shlex import split

import numpy
import pytest
from processes import ran, written

import tilecore

pytestmark = pytest.mark.process

SEES = """
import sys; print(sys.argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions, __file__, __spec__ and __spec__.name)
print(sorted(globals()))
"""
LATE = """
import importlib.util as util, sys
spec = util.find_spec("tilecore")
del sys.meta_path[:-3]
module = sys.modules["tilecore"] = util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.tile(1, 2), sys.meta_path)
"""
PROGRAMS = {  # Python's options, arguments, files, and what `python` gets
    "script": ("", "script.py -m --json x -- --repeats -1", {"script.py": SEES}),
    "Python's options": ("-PuW ignore -X utf8", "script.py", {"script.py": SEES}),
    "module": ("", "-m package.module -h --", {"package/__init__.py": "", "package/module.py": SEES}),
    "package": ("-O", "-mpackage run", {"package/__init__.py": "", "package/__main__.py": SEES}),
    "folder": ("", "folder -x", {"folder/__main__.py": SEES}),
    "archive": ("", "a.zip", {"a.zip": SEES}),
    "given code": ("", "-c 'import sys; print(sys.argv)' -x -- -m", {}),
    "through a link": ("", "./link/../script.py", {"other/inside/x": "", "other/script.py": SEES}),
    "double dash": ("", "-- -odd.py 1", {"-odd.py": SEES}),
    "code": ("", "exit.py", {"exit.py": "import os, sys; print(1, flush=True); os._exit(7)"}),
    "error": ("", "e.py", {"e.py": "def f(): 1 / 0\ntry: f()\nexcept Exception as e: raise KeyError(2) from e"}),
    "no module": ("", "-m no.such.module", {}),
    "no __main__": ("", "other", {"other/inside/x": ""}),
    "compiled": ("", "script.pyc -x", {"script.pyc": SEES}),
    "Ctrl-C": ("", "e.py", {"e.py": "import signal\nsignal.raise_signal(signal.SIGINT)"}),
    "name deleted": ("", "-c 'import numpy; del numpy.tile'", {}),
    "standard input": ("", "- -x", {}),
    "finder removed": ("", "script.py", {"script.py": LATE}),
}


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python_runs_it(name, tmp_path):
    own, options, files = PROGRAMS[name]
    written(tmp_path, files)
    run = ran(tmp_path, *split(own), "-m", "tilecore", "run", *split(options))
    assert run == ran(tmp_path, *split(own), *split(options))


@pytest.mark.parametrize("command, own", [
    ("-Xtracemalloc start.py", "-Xtracemalloc"), ("-uX dev -Wm start.py", "-uX dev -Wm"), ("-OOmtilecore", "-OO"),
    ("-BOc 'from tilecore.__main__ import main; main()'", "-BO"), ("-m trace -T --module tilecore", ""),
])  # fmt: skip
def test_pythons_options_end_where_it_ends_them(command, own, tmp_path):
    written(tmp_path, {"script.py": SEES, "start.py": "from tilecore.__main__ import main; main()"})
    assert ran(tmp_path, *split(command), "run", "script.py", "-m") == ran(tmp_path, *split(own), "script.py", "-m")


@pytest.mark.parametrize("command, options, text", [
    ("run", "absent.py", "absent.py: No such file or directory"),
    ("run", "absent", "absent: No such file or directory; for a module, use -m absent\n"),
    ("run", "script.py/", "script.py/: Not a directory"),
    ("run", "", "one of the arguments PROGRAM -m -c is required"),
    ("profile", "--json absent/t.json script.py", "absent/t.json: No such file or directory"),
    ("profile", "--json folder script.py", "folder: not a regular file; use - for standard output"),
    ("run", "--json t.json script.py", "unrecognized arguments: --json"),
    ("compare", "--rounds 0 script.py", "argument --rounds: expected a positive integer, got '0'"),
    *[("compare", name, f"{name} can be read only once") for name in ("-", "/dev/null")],
    ("compare", "absent.py", "absent.py: No such file"),
])  # fmt: skip
def test_what_is_not_found_is_one_line(command, options, text, tmp_path):
    (tmp_path / "folder").mkdir()
    written(tmp_path, {"script.py": "print(1)"})
    code, out, err = ran(tmp_path, "-m", "tilecore", command, *split(options))
    assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith("tilecore: ") and text in err


REPLACED = """
import importlib.util, sys
assert importlib.util.find_spec("numpy") and not [name for name in sys.modules if name.startswith("tilecore")]
import numpy
from numpy import tile
import multiprocessing, os, pickle, subprocess, threading
def is_ours(tile=tile):
    return tile(numpy.zeros((2, 2)), 2).flags.owndata
if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(tile)) is numpy.tile is tile and is_ours()
    answers = []
    for how in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(how).Pool(1) as pool: answers.append(pool.apply(is_ours))
    code = "import tilecore, numpy; print(numpy.tile(numpy.zeros((2, 2)), 2).flags.owndata)"
    subprocess.run([sys.executable, "-c", code])
    def last(): threading.main_thread().join(), print(is_ours(), pickle.dumps(is_ours)[:0])
    threading.Thread(target=last).start()
    print(*answers, "exec_module" in vars(numpy.__spec__.loader))
    sys.exit(3)
"""


def test_run_replaces_in_the_program_and_in_its_children(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    written(tmp_path, {"script.py": REPLACED, "sitecustomize.py": "import os; os.write(1, f'{__file__}\\n'.encode())"})
    code, out, err = ran(tmp_path, "-m", "tilecore", "run", "script.py")
    out = [line for line in out.splitlines() if line != str(tmp_path / "sitecustomize.py")]
    answers = "True True True" if os.name == "posix" else "True"
    assert (code, err) == (3, "") and out == ["True", f"{answers} False", "True b''"]


def test_the_users_variables_are_the_programs(tmp_path, monkeypatch):
    names = ["TILECORE_RUN", "TILECORE_PROFILE"]
    for name in names:
        monkeypatch.setenv(name, "t.json")
    code = f"import os, sys; print(*map(os.environ.get, {names}), sys._xoptions)"
    assert ran(tmp_path, "-m", "tilecore", "run", "-c", code) == (0, "t.json t.json {}\n", "")
    assert not os.listdir(tmp_path)


SLOTS = "1 hooks exec_module create_module"
FINDERS = """
import importlib.util, sys
class Finder:  # as many programs have it, or as wrapt's for its hooks, which gives the loader a method of its own
    hooks, busy = "hooks" in sys.argv, False
    def find_spec(self, name, path=None, target=None):
        if name != "numpy" or self.busy: return None
        if not self.hooks: return next(filter(None, (f.find_spec(name) for f in sys.meta_path if f is not self)))
        self.busy = True
        spec = importlib.util.find_spec(name)
        execute, spec.loader = spec.loader.exec_module, type("", (), {"__slots__": sys.argv[3:]})()
        spec.loader.exec_module, spec.loader.create_module, self.busy = execute, lambda spec: None, False
        return spec
sys.meta_path.insert(int(sys.argv[1]), Finder())
import numpy; print(numpy.tile(numpy.zeros((2, 2)), 2).flags.owndata)
"""


@pytest.mark.parametrize("arguments", ["0", "0 hooks __dict__", "1 hooks __dict__", SLOTS])
def test_a_program_with_a_finder_of_modules(arguments, tmp_path):
    assert ran(tmp_path, "-m", "tilecore", "run", "-c", FINDERS, *split(arguments)) == (0, "True\n", "")


SHARED = """
import importlib.util, sys
from importlib.machinery import PathFinder
class Finder:  # and the loader of all modules
    __slots__, loaders = (), {}
    def find_spec(self, name, path=None, target=None):
        if spec := PathFinder.find_spec(name, path): self.loaders[name], spec.loader = spec.loader, self
        return spec
    def create_module(self, spec): return self.loaders[spec.name].create_module(spec)
    def exec_module(self, module): self.loaders[module.__name__].exec_module(module)
sys.meta_path.insert(1, Finder())
found = importlib.util.find_spec("numpy").loader.loaders
import colorsys; print("numpy" in sys.modules)
import numpy; print(numpy.tile(numpy.zeros((2, 2)), 2).flags.owndata, numpy.__spec__.loader.loaders is found)
"""


def test_a_loader_of_all_modules(tmp_path):
    assert ran(tmp_path, "-m", "tilecore", "run", "-c", SHARED) == (0, "False\nTrue True\n", "")


RAISES = """
import linecache, sys
def handler(frame, event, _):  # of a signal that comes before this line
    if event == "line" and sys.argv[1] in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
        raise RuntimeError("time is up")
    return handler if frame.f_code.co_filename.endswith("sitecustomize.py") else None
sys.settrace(handler)
try: import numpy
except RuntimeError as error: print(error)
"""


@pytest.mark.parametrize("line", ["import tilecore", "replace_numpy_tile()"])
def test_what_a_signal_handler_raises_is_the_programs(line, tmp_path):
    assert ran(tmp_path, "-m", "tilecore", "run", "-c", RAISES, line) == (0, "time is up\n", "")


def test_a_program_with_a_numpy_of_its_own(tmp_path):
    written(tmp_path, {"numpy.py": "x = 1", "script.py": "import numpy; print(numpy.x)"})
    code, out, err = ran(tmp_path.parent, "-m", "tilecore", "run", str(tmp_path / "script.py"))
    assert (code, out, err.count("\n")) == (0, "1\n", 1) and err.endswith("; the program runs with NumPy's own\n")


@pytest.mark.parametrize("name", ["python2.7", "python3.6", "python3.10"])
def test_an_older_python_stays_as_it_is(name, tmp_path):
    if not (python := shutil.which(name)):
        pytest.skip("no such Python here")
    command = [python, "-c", "import sys; print(sys.path, len(sys.meta_path), 'sitecustomize' in sys.modules)"]
    paths = [os.path.join(os.path.dirname(tilecore.__file__), "_cli", "site"), str(tmp_path)]
    plain, ours = ({**os.environ, "PYTHONPATH": os.pathsep.join(value)} for value in (paths[1:], paths))
    ends = [subprocess.run(command, env=env, capture_output=True, check=False) for env in (plain, ours)]
    assert vars(ends[0]) == vars(ends[1])


RELOADS = """
import importlib, os, sys
sys.path.remove(os.path.dirname(__file__))
importlib.reload(sys.modules["sitecustomize"])
"""


def test_an_agent_that_reloads_sitecustomize(tmp_path, monkeypatch):
    written(tmp_path, {"sitecustomize.py": RELOADS})
    paths = [str(tmp_path), os.path.join(os.path.dirname(tilecore.__file__), "_cli", "site")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    code = "import numpy; print(numpy.tile(numpy.zeros((2, 2)), 2).flags.owndata)"
    assert ran(tmp_path, "-c", code) == (0, "True\n", "")


OTHER = """
import importlib.util, numpy, os, sys
numpy.tile = numpy.lib._shape_base_impl.tile = numpy.tile.__wrapped__
sys.modules.pop("sitecustomize", None)
sys.path.insert(0, os.path.join(os.path.dirname(importlib.util.find_spec("tilecore").origin), "_cli", "site"))
os.environ["PYTHONPATH"] = sys.path[0]
try: import sitecustomize
except ImportError: pass    # some distributions' Pythons have one of their own
import tilecore; print(numpy.tile(1, 2), tilecore.tile(numpy.ma.array([1]), 2))
"""


def test_where_nothing_can_be_replaced(tmp_path):
    why = "tilecore: numpy.tile cannot be replaced: it is not called by a pointer of NumPy's"
    ends = [ran(tmp_path, *told, "-c", OTHER) for told in ([], ["-X", "tilecore="])]
    assert ends == [(0, "[1 1] [1 1]\n", f"{why}; the program runs with NumPy's own\n"), (2, "", f"{why}\n")]
    why = "tilecore: numpy.tile cannot be replaced: Python's options -E, -I and -S exclude it"
    names = ("run", "profile", "compare")
    ends = [ran(tmp_path, "-E", "-m", "tilecore", command, "-c", "print(1)") for command in names]
    assert ends == [(0, "1\n", f"{why}; the program runs with NumPy's own\n")] + [(2, "", f"{why}\n")] * 2


def test_an_archive_whose_modules_the_program_lacks(tmp_path):
    """Such archives extend sys.path, and then start the command."""
    venv.create(tmp_path / "env", symlinks=os.name == "posix")
    python = tmp_path / "env" / ("bin/python" if os.name == "posix" else "Scripts/python.exe")
    own = {str(Path(module.__file__).parent.parent) for module in (numpy, tilecore)}
    start = f"import sys; sys.path += {own}; from tilecore.__main__ import main; sys.exit(main())"
    written(tmp_path, {"app.py": start, "program/numpy.py": "", "program/script.py": "import numpy"})
    ends = [ran(tmp_path, "app.py", name, "program/script.py", python=python) for name in ("run", "profile")]
    why = "tilecore: No module named 'tilecore'"
    assert ends == [(0, "", f"{why}; the program runs with NumPy's own\n"), (2, "", f"{why}\n")]


@pytest.mark.skipif(os.pathsep != ":", reason="no folder has this name")
def test_a_folder_that_pythonpath_cannot_name(tmp_path):
    (tmp_path / "a:b").mkdir()
    (tmp_path / "a:b" / "tilecore").symlink_to(os.path.dirname(tilecore.__file__))
    show = "import os; print(os.environ.get('PYTHONPATH'))"
    code, out, err = ran(tmp_path / "a:b", "-m", "tilecore", "run", "-c", show)
    assert (code, out) == (0, f"{os.environ.get('PYTHONPATH')}\n") and ": PYTHONPATH cannot name " in err


@pytest.mark.parametrize("first", ["numpy", "tilecore"])
def test_numpys_module_reloaded_before(first, tmp_path):
    """There is another `numpy.tile` then."""
    code = f"""
import {first}, importlib, numpy, warnings
warnings.simplefilter("ignore")
importlib.reload(numpy.lib._shape_base_impl)
if {first!r} == "tilecore": importlib.reload(numpy)
import tilecore
for block in (tilecore.replace_numpy_tile, tilecore.profile().__enter__):
    try: block()
    except RuntimeError as error: print(error)
"""
    why = "numpy.tile cannot be replaced: NumPy's module was reloaded\n"
    assert ran(tmp_path, "-c", code) == (0, why * 2, "")


REPLACED_IN_WORKERS = """
import multiprocessing, numpy, tilecore
from concurrent.futures import ProcessPoolExecutor
replaced = tilecore.replace_numpy_tile()    # in each worker too: all but fork's import this file
def is_ours(_): return numpy.tile(numpy.zeros((2, 2)), 2).flags.owndata
if __name__ == "__main__":
    for how in multiprocessing.get_all_start_methods():
        with ProcessPoolExecutor(1, multiprocessing.get_context(how)) as pool: print(*pool.map(is_ours, [0]))
"""


def test_a_line_of_the_program_replaces_in_all_workers(tmp_path):
    written(tmp_path, {"script.py": REPLACED_IN_WORKERS})
    assert ran(tmp_path, "script.py") == (0, "True\n" * (3 if os.name == "posix" else 1), "")


PROFILED = """
import atexit, os, sys, threading, numpy as np
from numpy import tile
def work(): return np.tile(np.zeros((256, 256, 1), "u1"), (1, 1, 3))
sys.modules["tilecore._profile.measure"].BUDGET = 1e9  # seconds: on a busy machine too, each call is measured
for _ in range(5): work()
atexit.register(work)
threading.Thread(target=lambda: threading.main_thread().join() or work()).start()
if hasattr(os, "fork"):
    if not (child := os.fork()): work(), sys.exit(0)
    os.waitpid(child, 0)
    os.mkdir("other"), os.chdir("other"), os.rmdir(os.getcwd())
assert tile(np.zeros(0), -1).shape == (0,) and os.stat(os.path.dirname(__file__) + "/t.json").st_size == 3
raise KeyError("its own")
"""


def test_profile_of_given_code(tmp_path):
    code, out, err = ran(tmp_path, "-m", "tilecore", "profile", "-c", "import numpy; print(numpy.tile(1, 2))")
    assert (code, out) == (0, "[1 1]\n") and "\ntilecore profile: numpy.tile took " in err and "<string>:1 <mod" in err
    strict = ["-X", "warn_default_encoding", "-W", "error"]
    code = "import os, sys; print(1 - ('site' in str(os.environ.get('PYTHONPATH')))); sys.exit(3)"
    told = ran(tmp_path, *strict, "-m", "tilecore", "profile", "--json", "-", "-c", code)
    assert told[0] == 3 and told[1].startswith("1\n{") and json.loads(told[1][2:])["sites"] == []
    assert "EncodingWarning" not in told[2] and not os.listdir(tmp_path)


def test_what_profile_fails_on_costs_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1")
    code = "import numpy, pathlib, sys; sys.path[:0] = [pathlib.Path('/'), None]; numpy.tile(1, 2); "
    fails = "sys.modules['tilecore._profile.measure'].make_table = sys.stdout = print()"
    for end, text in {"": "numpy.tile", fails: "tilecore profile: no table: TypeError: 'NoneType'"}.items():
        done = ran(tmp_path, "-m", "tilecore", "profile", "--json", "t.json", "-c", code + end)
        assert done[0] == (2 if end else 0) and text in done[2] and ("no table" in done[2]) == (end == fails)
        assert json.loads((tmp_path / "t.json").read_text())["sites"][0]["calls"] == 1
        (tmp_path / "t.json").unlink()


@pytest.mark.skipif(os.name != "posix", reason="limits, signals")
@pytest.mark.parametrize("code, ends, text", [
    ("import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9, 9))", 2, "\ntilecore: {file}: File too large\n"),
    ("import os; os.kill(os.getpid(), 15)", -15, ""),
])  # fmt: skip
def test_the_old_file_is_kept(code, ends, text, tmp_path):
    (file := tmp_path / "t.json").write_text("old, and long")
    for _ in range(2):
        done = ran(tmp_path, "-m", "tilecore", "profile", "--json", "t.json", "-c", code)
        assert (done[0], done[1]) == (ends, "") and done[2].endswith(text.format(file=file))
        assert not file.exists() or file.read_text() == "old, and long"
        assert os.listdir(tmp_path) == ["t.json"] * file.exists()
        file.unlink(missing_ok=True)


def test_profile_tells_at_the_very_end(tmp_path):
    written(tmp_path, {"script.py": PROFILED, "t.json": "old"})
    code, out, err = ran(tmp_path, "-W", "ignore", "-m", "tilecore", "profile", "--json", "t.json", "script.py")
    assert (code, out) == (1, "")
    trace, told = err.split("\ntilecore profile: ")
    assert trace.endswith("KeyError: 'its own'\n") and "tilecore" not in trace
    assert sorted(os.listdir(tmp_path)) == ["script.py", "t.json"]
    found = json.loads((tmp_path / "t.json").read_text())
    names = "seconds profile_seconds numpy_seconds tilecore_seconds page_faults system_seconds sites"
    assert {*found} == {*names.split()}
    site, odd = sorted(found["sites"], key=lambda site: -site["calls"])
    assert site["inputs"] == {"(256, 256, 1), uint8, C, (1, 1, 3)": 7}
    assert (site["calls"], site["measured"], site["bytes"], site["function"]) == (7, 7, 7 * 3 * 2**16, "work")
    assert (site["file"], site["line"]) == (str(tmp_path / "script.py"), 4)
    assert 0 < site["numpy_seconds"] < found["seconds"] and site["tilecore_seconds"] > 0
    assert site["hint"] in re.sub(r"\s+", " ", told)
    assert "tilecore refuses this: tile: reps must not be negative" in odd["hint"]
    assert odd["tilecore_seconds"] is None and odd["measured"] == 0
