"""`tilecore run` and `tilecore profile`: programs as Python runs them, and what is told of their calls."""

import json
import os
import py_compile
import re
import subprocess
import sys
import weakref
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import MAGIC_NUMBER

import numpy as np
import pytest

from tilecore._cli import profile as module
from tilecore._cli.profile import Profile

pytestmark = pytest.mark.process

SEES = """
import sys, __main__
assert __main__.__dict__ is globals() and sys.modules["__main__"].__builtins__ is __builtins__
if sys.version_info < (3, 14): print(__annotations__)
print(sys.argv, sys.path[0], __file__, __package__, __spec__ and __spec__.name, len(sys.path))
"""
PROGRAMS = {  # options, files, and what `python` gets
    "script": ("script.py -m --json x -- --repeats -1", {"script.py": SEES}),
    "without its folder": ("script.py", {"script.py": SEES}),  # with Python's own -P
    "module": ("-m package.module -h --", {"package/__init__.py": "", "package/module.py": SEES}),
    "package": ("-mpackage run", {"package/__init__.py": "", "package/__main__.py": SEES}),
    "folder": ("folder -x", {"folder/__main__.py": SEES}),
    "archive": ("a.zip", {"a.zip": SEES}),
    "compiled": ("e.pyc -x", {"e.pyc": SEES}),
    "through a link": ("./link/../script.py", {"other/inside/x": "", "other/script.py": SEES}),
    "double dash": ("-- -odd.py 1", {"-odd.py": SEES}),
    "text": ("exit.py", {"exit.py": "import sys; print(1); sys.exit('text')"}),
    "its name in a text": ("exit.py", {"exit.py": "import sys; sys.exit(sys.executable + ': oops')"}),
    "code": ("exit.py", {"exit.py": "import os, sys; print(1, flush=True); os._exit(7)"}),
    "error": ("e.py", {"e.py": "def f(): 1 / 0\ntry: f()\nexcept Exception as e: raise KeyError(2) from e"}),
    "error of a module": ("-m e", {"e.py": "import no_such_module_1"}),
    "syntax": ("e.py", {"e.py": "x = ("}),
    "Ctrl-C": ("e.py", {"e.py": "import signal\nsignal.raise_signal(signal.SIGINT)"}),
    "hook": ("e.py", {"e.py": "import sys\nsys.excepthook = lambda k, v, t: print(k, t.tb_lineno, t.tb_next)\n1 / 0"}),
}


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        if name == "other/inside/x":
            (folder / "link").symlink_to(path.parent)
        if name.endswith(".pyc"):
            py_compile.compile(path, path)
        if name.endswith(".zip"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("__main__.py", text)


def ran(folder, *command):
    command = [sys.executable, *command]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python_runs_it(name, tmp_path):
    options, files = PROGRAMS[name]
    own = ["-P"] if name == "without its folder" else []
    written(tmp_path, files)
    assert ran(tmp_path, *own, "-m", "tilecore", "run", *options.split()) == ran(tmp_path, *own, *options.split())


@pytest.mark.parametrize(
    "command, options, text",
    [
        ("run", "absent.py", "absent.py: No such file or directory"),
        ("profile", "-m no.such.module", "No module named 'no'"),
        ("run", "old.pyc", "old.pyc: damaged, or not compiled by this version of Python"),
        ("run", "cut", "cut: damaged, or not compiled by this version of Python"),
        ("run", "script.py/", "script.py/: Not a directory"),
        ("profile", "folder", "can't find '__main__' module in"),
        ("run", "", "one of the arguments PROGRAM -m is required"),
        ("profile", "--json absent/t.json script.py", "absent/t.json: No such file or directory"),
        ("profile", "--json folder script.py", "folder: not a regular file"),
        ("run", "--json t.json script.py", "unrecognized arguments: --json"),
    ],
)
def test_what_is_not_found_is_one_line(command, options, text, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.pyc").touch()
    (tmp_path / "cut").write_bytes(MAGIC_NUMBER)
    written(tmp_path, {"script.py": "print(1)"})
    code, out, err = ran(tmp_path, "-m", "tilecore", command, *options.split())
    assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith("tilecore: ") and text in err


REPLACED = """
import numpy
from numpy import tile
import multiprocessing, os, pickle, sys, threading
def is_ours(tile=tile):
    return tile(numpy.zeros((2, 2), order="F"), 1).flags.c_contiguous
if __name__ == "__main__":
    assert {numpy.tile: 1}[tile.__wrapped__] == {tile.__wrapped__: 1}[numpy.tile] == 1
    assert pickle.loads(pickle.dumps(tile)) is tile and is_ours()
    answers = []
    for how in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(how).Pool(1) as pool: answers.append((how, pool.apply(is_ours)))
    def last(): threading.main_thread().join(), print(is_ours(), pickle.dumps(is_ours)[:0])
    threading.Thread(target=last).start()
    print(sorted(answers))
    sys.exit(3)
"""


def test_run_replaces_in_the_program_and_in_forked_children(tmp_path):
    written(tmp_path, {"script.py": REPLACED})
    code, out, err = ran(tmp_path, "-m", "tilecore", "run", "script.py")
    methods = [("fork", True), ("forkserver", False), ("spawn", False)]
    assert (code, err.count("\n")) == (3, 1) and err.startswith("tilecore: child processes took an unknown time; ")
    assert out.splitlines() == [str(methods if os.name == "posix" else methods[2:]), "True b''"]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell the time of child processes")
def test_children_that_took_time(tmp_path):
    written(
        tmp_path, {"script.py": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])"}
    )
    err = ran(tmp_path, "-m", "tilecore", "run", "script.py")[2]
    assert re.fullmatch(r"tilecore: child processes took [\d.]+ m?s; those not made by fork had .*\n", err)


def test_run_imports_what_it_uses(tmp_path):
    written(tmp_path, {"script.py": "import sys; print(*sys.modules)"})
    code, out, err = ran(tmp_path, "-m", "tilecore", "run", "script.py")
    ours = {name for name in out.split() if name.startswith("tilecore._cli.")}
    assert (code, err, ours) == (0, "", {f"tilecore._cli.{name}" for name in ("main", "run", "units")})


PROFILED = """
import atexit, os, sys, threading, numpy as np
from numpy import tile
def work(): return np.tile(np.zeros((256, 256, 1), "u1"), (1, 1, 3))
sys.modules["tilecore._cli.profile"].BUDGET = 60.0  # seconds: on a busy machine too, each call is measured
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


def test_profile_tells_at_the_very_end(tmp_path):
    written(tmp_path, {"script.py": PROFILED, "t.json": "old"})
    code, out, err = ran(tmp_path, "-W", "ignore", "-m", "tilecore", "profile", "--json", "t.json", "script.py")
    assert (code, out) == (1, "")
    trace, told = err.split("\ntilecore profile: ")
    assert trace.endswith("KeyError: 'its own'\n") and "tilecore" not in trace
    assert sorted(os.listdir(tmp_path)) == ["script.py", "t.json"]
    found = json.loads((tmp_path / "t.json").read_text())
    assert set(found) == {"seconds", "profile_seconds", "numpy_seconds", "tilecore_seconds", "sites"}
    site, odd = sorted(found["sites"], key=lambda site: -site["calls"])
    assert site["inputs"] == {"(256, 256, 1), uint8, C, (1, 1, 3)": 7}
    assert (site["calls"], site["measured"], site["bytes"], site["function"]) == (7, 7, 7 * 3 * 2**16, "work")
    assert (site["file"], site["line"]) == (str(tmp_path / "script.py"), 4)
    assert 0 < site["numpy_seconds"] < found["seconds"] and site["tilecore_seconds"] > 0
    assert site["hint"] in told
    assert "tilecore refuses this: tile: reps must not be negative" in odd["hint"]
    assert odd["tilecore_seconds"] is None and odd["measured"] == 0


# ---------------------------------------------------------------- what is measured


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(module, "BUDGET", 60.0)  # seconds: that a busy machine takes long is no matter here
    return Profile()


def rows(profile):
    return [site.row(*place, 1e-9) for place, site in profile.sites.items()]


@pytest.mark.quick
def test_the_program_gets_numpys_own(measured):
    x = np.arange(6).reshape(2, 3)
    for given, named in [((x, 2), {}), ((x,), {"reps": (2, 2)}), ((), {"reps": [2, 1], "A": x}), ((x, 1.0), {})]:
        np.testing.assert_array_equal(measured.tile(*given, **named), np.tile(*given, **named), strict=True)
    for given, named in [((), {}), ((x,), {}), ((x, 1, 2), {}), ((x,), {"b": 1}), ((x, "x"), {}), ((x, -1), {})]:
        with pytest.raises((TypeError, ValueError)) as theirs:
            np.tile(*given, **named)
        with pytest.raises(theirs.type) as passed:
            measured.tile(*given, **named)
        assert str(passed.value) == str(theirs.value)
    assert measured.tile(x, (n for n in (2, 2))).shape == (4, 6)  # an iterator has its items once
    site = max(measured.sites.values(), key=lambda site: site.returned)
    assert (site.calls, site.pairs, measured.local.inside) == (4, 3, False)


@pytest.mark.quick
def test_other_libraries_arrays_are_asked_once(measured):
    class Unit(np.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            asked.append(function)
            return measured.tile(np.asarray(self), 2)  # inside: not a call of the program's

    asked = []
    assert measured.tile(np.arange(3).view(Unit), 2).tolist() == [0, 1, 2, 0, 1, 2]
    (row,) = rows(measured)
    assert len(asked) == 1 and (row["calls"], row["measured"], row["tilecore_seconds"]) == (1, 0, None)
    assert row["hint"].startswith("not measured") and row["inputs"] == {"Unit, 2": 1}


@pytest.mark.quick
def test_objects_of_the_program_are_read_once(measured):
    class Number(int):
        def __repr__(self):
            raise ZeroDivisionError

        def __index__(self):
            asked.append(self)
            return int(self)

    x, asked, nested = np.zeros(3), [], []
    nested.append(nested)
    np.tile(x, (Number(2),))
    once = len(asked)
    assert measured.tile(x, (Number(2),)).shape == (6,) and len(asked) == 2 * once
    assert not any(map(module.is_plain, (nested, [[Number(2)]], (x, object()))))
    strings = np.zeros(3, np.dtypes.StringDType(na_object=[]))  # its dtype has no hash
    assert measured.tile(strings, 2).shape == (6,)
    assert [row["measured"] for row in rows(measured)] == [0, 1]


@pytest.mark.quick
def test_the_order_of_pairs_alternates(measured, monkeypatch):
    order = []
    monkeypatch.setattr(module, "BATCHED", 0)
    for name in ("time_tilecore", "numpy_tile"):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, n=name, f=function: order.append(n) or f(*given))
    for _ in range(4):
        measured.tile(np.arange(3), 2)
    pairs = {tuple(order[n : n + 2]) for n in range(0, 8, 2)}
    assert pairs == {("time_tilecore", "numpy_tile"), ("numpy_tile", "time_tilecore")}


@pytest.mark.quick
def test_it_ends_within_its_budget(measured, monkeypatch):
    monkeypatch.setattr(module, "SHARE", 0.0)

    def one():
        measured.tile(np.zeros(5, "u1"), 4)

    one()
    (site,) = measured.sites.values()
    for spent, there in ((1.0, 0.0), (0.6, 0.6)):  # nothing is left; less is left than this place has taken
        measured.spent, site.spent = spent * module.BUDGET, there * module.BUDGET
        one()
    measured.tile([1], 2)
    assert [(row["calls"], row["measured"]) for row in rows(measured)] == [(3, 1), (1, 1)]
    assert rows(measured)[0]["bytes"] == 3 * 20
    assert rows(measured)[0]["inputs"] == {"(5,), uint8, C, 4": 1}


@pytest.mark.quick
def test_large_results_are_not_made_twice(measured, monkeypatch, settings_stay):
    monkeypatch.setattr(module.tilecore, "get_max_bytes", lambda: 32 * 1000)
    measured.tile(np.zeros(1000, "u1"), 1)
    measured.tile(np.zeros(1000, "u1"), 2)
    assert [row["measured"] for row in rows(measured)] == [1, 0]


@pytest.mark.quick
def test_a_result_lives_as_long_as_numpys(measured, monkeypatch):
    made, timed = [], module.time_tilecore
    monkeypatch.setattr(module, "time_tilecore", lambda *a: made.append(weakref.ref((pair := timed(*a))[1])) or pair)
    kept = measured.tile(np.zeros(2**16, "u1"), 4)
    view = kept[:1]
    del kept
    assert made[0]() is not None
    del view
    assert made[0]() is None


@pytest.mark.quick
@pytest.mark.parametrize(
    "x, reps, seconds, hint, times",
    [
        (np.zeros((4, 1)), (1, 3), 0, "every repeated axis has length 1", 1),
        (np.zeros((4, 1)), (1, 3), 9, "slower with tilecore; every repeated axis has length 1", module.FEW),
        (np.zeros(4), 3, 9, "slower with tilecore; keep numpy.tile", module.FEW),
        (np.zeros(4), 3, 9, "", module.FEW - 1),
        (np.zeros(4), True, 0, "tilecore refuses this: tile: reps must be", 1),
        (np.zeros(4), 2**10, 0, "much memory: tile_mapped", 1),
        (np.zeros(4), 2, 0, "one shape many times", module.MANY),
        (np.zeros(4), -1, 0, "every call raised an error", 2),
        (np.zeros(4), 2, 0, "", 1),
    ],
)
def test_hints(x, reps, seconds, hint, times, measured, monkeypatch):
    timed = module.time_tilecore
    monkeypatch.setattr(module, "LARGE", 2**15)
    monkeypatch.setattr(module, "BATCHED", 0)
    monkeypatch.setattr(module, "time_tilecore", lambda *given: (seconds or 1e-9, *timed(*given)[1:]))
    for _ in range(times):
        with suppress(ValueError):
            measured.tile(x, reps)
    (row,) = rows(measured)
    assert row["calls"] == times and row["hint"].startswith(hint) and (hint or not row["hint"])


@pytest.mark.quick
@pytest.mark.parametrize(("whole", "hint"), [(0.4, "one shape many times"), (1.0, "")])
def test_a_hint_only_where_it_could_win_a_hundredth(whole, hint):
    """tilecore takes 5 ms in all: a hint could save no more than that of the program's seconds."""
    site = module.Site()
    site.calls = site.returned = site.pairs = site.inputs["x"] = module.MANY
    site.is_view, site.seconds, site.sizes = False, 50e-3, {4: [(1e-3, 1e-4)] * module.MANY}
    assert site.row("file", 1, "function", whole)["hint"].partition(":")[0] == hint


@pytest.mark.quick
@pytest.mark.parametrize("seconds", [(3.0, 10.0), (7.5, 10.0), (0.0, 0.0)])
def test_other_processes_are_reported(seconds, measured, monkeypatch, capfd):
    measured.processors = (0.0, 0.0)
    monkeypatch.setattr(module, "processor_seconds", lambda: seconds)
    measured.report(None)
    assert ("\nOther processes took 75% of" in capfd.readouterr().err) == (seconds[0] == 7.5)


@pytest.mark.quick
def test_no_single_call_decides(measured):
    """One slow call, when another process took the processor, does not change the ratios, nor do two sizes."""
    site = module.Site()
    site.sizes = {4: [(3e-6, 1e-6)] * 9 + [(3e-6, 5e-3), (9e-3, 1e-6)], 20: [(2e-3, 1e-3)] * 3}
    assert [round(ratio, 2) for ratio in site.ratios()] == [2.0, 2.0, 2.0]


@pytest.mark.quick
def test_calls_from_several_threads(measured, capfd):
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda n: measured.tile([n], 2), range(1200)):
            pass
    assert [row["calls"] for row in rows(measured)] == [1200]
    measured.cost = 1e6  # each thread's, while others measured too
    measured.threads |= {-1, -2}
    measured.report(None)
    assert re.search("in [3-6] threads together; the program took [1-9]", capfd.readouterr().err)


@pytest.mark.quick
def test_the_printed_table(measured, monkeypatch, capfd):
    monkeypatch.setattr(os, "times", lambda: (0, 0, 0, 0, 0))
    measured.report(None)
    assert capfd.readouterr().err.startswith("\ntilecore profile: numpy.tile was not called\n")
    measured = Profile()
    exec(compile("measured.tile(np.zeros(3), 2)", "a\nb", "exec"), {"measured": measured, "np": np})
    monkeypatch.setattr(os, "times", lambda: (9, 9, 2, 0.5, 9))
    measured.report(os.devnull)
    told = capfd.readouterr().err
    assert re.search(r" ~[0-9.e+]+x +1 +48 B  a\\nb:1 <module>\n +\(3,\), float64, C, 2; measured 1 of 1 calls\n", told)
    assert "\nNot measured: child processes, which took 2.5 s\n" in told
    assert f"\ntilecore: {os.devnull}: not a regular file\n" in told
    measured.report(None)
    assert capfd.readouterr().err == ""
