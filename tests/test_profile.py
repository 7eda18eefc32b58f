"""What `tilecore.profile` and `tilecore profile` tell of calls of `numpy.tile`."""

import inspect
import os
import re
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO, StringIO, TextIOWrapper
from math import inf
from pathlib import Path
from traceback import extract_tb
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from tilecore import _process as process
from tilecore._core.numpy_own import numpy_tile
from tilecore._profile import measure as module
from tilecore._profile import table
from tilecore._profile.measure import Profile

pytestmark = pytest.mark.quick
CUT = [
    *["np.tile(x, -(-n // len(x)))[:n]", "np.tile(x, (f(g(1)), 2))[0:n, : len(x)]", "np.tile( x, 3, )[..., :n]"],
    *["f(np.tile(x, 2)[len(x) :])", "np.tile(x, 2)[:-1]", "numpy.tile(x, 2)[a : b + 1]"],
]
KEPT = [
    *[f"np.tile(x, 3){rest}" for rest in ("[:, None]", "[::2]", "[::-1]", "[0]", "")],
    *["np.tile(x[:3], 3)", "np.tile(x, f(b)[:2])", "x[:2] = np.tile(y, 3)", "f(x)[:2]", "", "np.tile(" * 1000],
]


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(module, "BUDGET", 1e9)  # seconds, so that a busy machine makes pairs too
    monkeypatch.setattr(module, "overheads", [(0.0, 0.0)] * 2)
    profile = Profile()
    with profile.block():
        yield profile


def ended(profile):
    """The table that is printed."""
    profile.report(file := StringIO())
    return file.getvalue()


def rows(profile):
    return [site.row(*place, 1e-9) for place, site in profile.sites.items()]


def test_the_program_gets_numpys_own(measured):
    x = np.arange(6).reshape(2, 3)
    for given, named in [((x, 2), {}), ((x,), {"reps": (2, 2)}), ((), {"reps": [2, 1], "A": x}), ((x, 1.0), {})]:
        np.testing.assert_array_equal(np.tile(*given, **named), numpy_tile(*given, **named), strict=True)
    for given, named in [((), {}), ((x,), {}), ((x, 1, 2), {}), ((x,), {"b": 1}), ((x, "x"), {}), ((x, -1), {})]:
        with pytest.raises((TypeError, ValueError)) as theirs:
            numpy_tile(*given, **named)
        with pytest.raises(theirs.type) as passed:
            np.tile(*given, **named)
        assert str(passed.value) == str(theirs.value)
        traces = [[frame.name for frame in extract_tb(error.tb)] for error in (passed, theirs)]
        assert traces[0][2:] == traces[1][2:] and traces[0][1] == "tilecore._profile.block.measure"
    assert np.tile(x, (n for n in (2, 2))).shape == (4, 6)  # an iterator has its items once
    site = max(measured.sites.values(), key=lambda site: site.returned)
    assert (site.calls, site.pairs, module.local.inside) == (4, 3, False)


def test_other_libraries_arrays_are_asked_once(measured):
    class Unit(np.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            asked.append(function)
            return np.tile(np.asarray(self), 2)  # inside: not a call of the program's

    asked = []
    assert np.tile(np.arange(3).view(Unit), 2).tolist() == [0, 1, 2, 0, 1, 2]
    (row,) = rows(measured)
    assert len(asked) == 1 and (row["calls"], row["measured"], row["tilecore_seconds"]) == (1, 0, None)
    assert row["hint"].startswith("not measured") and row["inputs"] == {"Unit, 2": 1}
    assert np.tile(np.arange(3), type("Two", (tuple,), {"__array_function__": lambda *_: "theirs"})((2,))) == "theirs"


def test_objects_of_the_program_are_read_once(measured):
    class Number(int):
        def __repr__(self):
            raise ZeroDivisionError

        def __index__(self):
            asked.append(self)
            return int(self)

    x, asked, nested = np.zeros(3), [], []
    nested.append(nested)
    numpy_tile(x, (Number(2),))
    once = len(asked)
    assert np.tile(x, (Number(2),)).shape == (6,) and len(asked) == 2 * once
    assert not any(map(module.is_plain, (nested, [[Number(2)]], (x, object()), np.array([Number(2)], object))))
    strings = np.zeros(3, np.dtypes.StringDType(na_object=[]))  # its dtype has no hash
    assert np.tile(strings, 2).shape == (6,)
    assert np.tile(np.empty(0), 10**5000).size == 0  # str() refuses such an int
    assert [row["measured"] for row in rows(measured)] == [0, 1, 0]


def test_the_order_of_pairs_alternates(measured, monkeypatch):
    order = []
    monkeypatch.setattr(module, "BATCHED", 0)
    for name in ("time_tilecore", "numpy_tile"):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, n=name, f=function: order.append(n) or f(*given))
    for _ in range(4):
        np.tile(np.arange(3), 2)
    pairs = {tuple(order[n : n + 2]) for n in range(0, 8, 2)}
    assert pairs == {("time_tilecore", "numpy_tile"), ("numpy_tile", "time_tilecore")}


@pytest.mark.parametrize(("budget", "counted", "unseen"), [(-60.0, 0.25, 3.0), (900.0, 0.5, 5.0)])
def test_the_profiles_own_time_is_counted_apart(budget, counted, unseen, measured, monkeypatch):
    """Each look at a clock takes a second, and nothing else takes time: so NumPy's time is one second a call."""
    ticks = iter(range(10**6)).__next__
    values = {"BUDGET": budget, "perf_counter": ticks, "clock": ticks, "overheads": [(0.25, 3.0), (0.5, 5.0)]}
    for name, value in values.items():
        monkeypatch.setattr(module, name, value)
    measured.start()
    for _ in range(4):
        np.tile(np.zeros(3), 2)
    ended(measured)
    assert measured.table["numpy_seconds"] == 4 * (1 - counted)
    assert measured.table["seconds"] == 4 * (1 - counted - unseen) + 5  # and a second between calls


@pytest.mark.parametrize(("spent", "pairs"), [(inf, 0), (-inf, 15 * 2)])
def test_what_it_adds_is_measured_without_pairs_and_with_them(spent, pairs, monkeypatch):
    """Each look at a clock takes a second, NumPy's function ten: one second is counted as NumPy's, and one unseen."""
    took, measure_pair = [], mock.Mock(side_effect=module.measure_pair)

    def timeit(code, number, globals):
        before = sum(took)
        exec(f"{code};" * number, globals)
        return sum(took) - before

    clock = lambda: took.append(1) or sum(took)  # noqa: E731
    theirs = lambda *given: took.append(10) or numpy_tile(*given)  # noqa: E731
    values = {"perf_counter": clock, "clock": clock, "numpy_tile": theirs, "timeit": timeit, "overheads": [(0, 0)] * 2}
    for name, value in (values | {"measure_pair": measure_pair}).items():
        monkeypatch.setattr(module, name, value)
    assert module.calibrate(spent, 2) == (1, 1) and measure_pair.call_count == pairs and not module.active


def test_later_calls_are_sampled(measured, monkeypatch):
    monkeypatch.setattr(module, "FIRST", 2)
    monkeypatch.setattr(module, "random", iter([0.5, 0.0, 0.9]).__next__)
    for _ in range(5):
        np.tile(np.zeros(3), 2)
    assert [(row["calls"], row["measured"]) for row in rows(measured)] == [(5, 3)]


def test_a_clock_that_stands_still(measured, monkeypatch):
    for name in ("perf_counter", "clock"):
        monkeypatch.setattr(module, name, lambda: 1.0)
    measured.start()
    np.tile(np.zeros(3), 2)
    assert "numpy.tile took 0 s of 0 s, 0.0%" in ended(measured)


def test_it_ends_within_its_budget(measured, monkeypatch):
    monkeypatch.setattr(module, "SHARE", 0.0)

    def one():
        np.tile(np.zeros(5, "u1"), 4)

    one()
    (site,) = measured.sites.values()
    for spent, there in ((1.0, 0.0), (0.6, 0.6)):  # nothing is left; less is left than this place has taken
        measured.spent, site.spent = spent * module.BUDGET, there * module.BUDGET
        one()
    np.tile([1], 2)
    assert [(row["calls"], row["measured"]) for row in rows(measured)] == [(3, 1), (1, 1)]
    assert rows(measured)[0]["bytes"] == 3 * 20
    assert rows(measured)[0]["inputs"] == {"(5,), uint8, C, 4": 1}


def test_large_results_are_not_made_twice(measured, monkeypatch, settings_stay):
    monkeypatch.setattr(module, "get_max_bytes", lambda: 32 * 1000)
    np.tile(np.zeros(1000, "u1"), 1)
    np.tile(np.zeros(1000, "u1"), 2)
    assert [row["measured"] for row in rows(measured)] == [1, 0]


def test_a_result_lives_as_long_as_numpys(measured, monkeypatch):
    made, timed = [], module.time_tilecore
    monkeypatch.setattr(module, "time_tilecore", lambda *a: made.append(weakref.ref((pair := timed(*a))[1])) or pair)
    kept = np.tile(np.zeros(2**16, "u1"), 4)
    view = kept[:1]
    del kept
    assert made[0]() is not None
    del view
    assert made[0]() is None


@pytest.mark.parametrize("x, reps, seconds, hint, times", [
    (np.zeros((1, 200)), (100, 1), 0, "every repeated axis has length 1", 1),
    (np.zeros((1, 200)), (100, 1), 9, "slower with tilecore; every repeated axis has length 1", table.FEW),
    (np.zeros((1, 200)), (60, 1), 0, "", 1),  # small results are tiled faster than they are broadcast
    (np.zeros((200, 1)), (1, 100), 0, "", 1),  # neither short nor long
    (np.zeros((9999, 1)), (1, 3), 0, "for arithmetic, keep the tiling", 1),
    *[(x, 3, 9, "slower with tilecore; keep numpy.tile", table.FEW) for x in (np.zeros((9999, 1)), np.zeros(4))],
    (np.zeros(4), 3, 9, "", table.FEW - 1), (np.zeros(4), True, 0, "tilecore refuses this: tile: reps must be", 1),
    (np.zeros(4), 2**10, 0, "much memory: tile_mapped", 1), (np.zeros(4), -1, 0, "every call raised an error", 2),
    (np.zeros(4), 2, 0, "one shape many times: a TilePlan", module.MANY), (np.zeros(1500), 2, 0, "", module.MANY),
    (np.zeros(4), 2, 0, "", 1),
])  # fmt: skip
def test_each_hint_is_given_where_it_holds(x, reps, seconds, hint, times, measured, monkeypatch):
    timed = module.time_tilecore
    monkeypatch.setattr(module, "LARGE", 2**15 if x.ndim == 1 else inf)
    monkeypatch.setattr(module, "BATCHED", 0)
    monkeypatch.setattr(module, "time_tilecore", lambda *given: (seconds or 1e-9, *timed(*given)[1:]))
    for _ in range(times):
        with suppress(ValueError):
            np.tile(x, reps)
    (row,) = rows(measured)
    assert row["calls"] == times and row["hint"].startswith(hint) and (hint or not row["hint"])


@pytest.mark.parametrize("code", [*CUT, *KEPT])
def test_the_code_says_whether_a_result_is_cut(code):
    assert module.is_cut(code) == (code in CUT)


def test_the_code_of_a_place(measured, tmp_path, monkeypatch):
    """It is shown, and read for the hint; a cell of a notebook is named as IPython does."""
    (file := tmp_path / "1730663522.py").write_text("n = 3\nwhole = np.tile(np.zeros(4),\n    n)[:10]\n")
    exec(compile(file.read_text(), str(file), "exec"), {"np": np})
    (row,) = rows(measured)
    assert row["code"] == "whole = np.tile(np.zeros(4), n)[:10]"
    assert row["hint"].startswith("cut after the call: tile_region ")
    place = [" ".join(text.split()) for text in table.describe(row)[1:3]]
    assert place[0].endswith("1730663522.py:2 <module>") and place[1] == row["code"]
    name = {str(file): ("Cell", "In[4]")}.get
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=name))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert table.describe(row)[1] == "Cell In[4], line 2 <module>"
    assert table.name_place("other.py", 1, "f") == "other.py:1 f"


@pytest.mark.parametrize(("whole", "hint"), [(0.4, "one shape many times"), (1.0, "")])
def test_a_hint_only_where_it_could_win_a_hundredth(whole, hint):
    """tilecore takes 5 ms in all: a hint could save no more than that of the program's seconds."""
    site = module.Site()
    site.calls = site.returned = site.pairs = site.inputs["x"] = module.MANY
    site.inner, site.seconds, site.sizes = 0, 50e-3, {4: [(1e-3, 1e-4)] * module.MANY}
    assert site.row("file", 1, "function", whole)["hint"].partition(":")[0] == hint


@pytest.mark.parametrize("step, fine", [(1e-6, True), (0.016, False)])
def test_a_threads_clock_is_used_if_its_steps_are_short(step, fine, monkeypatch):
    monkeypatch.setattr(process, "thread_time", lambda: time.perf_counter() // step * step)
    monkeypatch.setattr(process.os, "name", "posix")
    assert (process.choose_clock() is process.thread_time) == fine


@pytest.mark.parametrize("faults, kilobytes, told", [(0, 128, False), (9, 128, True), (9, 1, False), (10**9, 1, True)])
def test_page_faults_are_told_where_they_matter(faults, kilobytes, told, measured, monkeypatch):
    """While they are many, no place is called slower."""
    timed, before = module.time_tilecore, measured.faults
    monkeypatch.setattr(module, "BATCHED", 0)
    monkeypatch.setattr(module, "time_tilecore", lambda *given: (9, *timed(*given)[1:]))
    monkeypatch.setattr(module, "page_faults", lambda: before + faults)
    for _ in range(table.FEW):
        np.tile(np.zeros(512, "u1"), 2 * kilobytes)
    measured.started = time.perf_counter()  # so that the calls are a large part of the time
    shown = " ".join(ended(measured).split())
    assert (f" {faults:,} page faults, " in shown and "`tilecore compare` shows what the whole " in shown) == told
    assert measured.table["page_faults"] == faults and measured.table["system_seconds"] >= 0
    many = faults == 10**9
    assert ("slower" in shown, "keep numpy.tile" in shown, "page faults decide" in shown) == (not many, not many, many)


def test_a_report_that_fails_raises_nothing(capsys, monkeypatch):
    """But what a signal handler raises meanwhile is the program's."""
    monkeypatch.setattr(table, "WIDTH", 0)  # an error of textwrap's
    with Profile().block() as data:
        np.tile([1], 2)
    assert capsys.readouterr().err.startswith("tilecore profile: no table: ValueError: invalid width 0")
    assert [site["calls"] for site in data["sites"]] == [1]
    monkeypatch.setattr(table, "wrap", lambda *given, **named: 1 / 0)
    with pytest.raises(ZeroDivisionError), Profile().block():
        np.tile([1], 2)


@pytest.mark.parametrize("seconds", [(3.0, 10.0), (7.5, 10.0), (0.0, 0.0)])
def test_other_processes_are_reported(seconds, measured, monkeypatch):
    measured.processors = (0.0, 0.0)
    monkeypatch.setattr(process, "processor_seconds", lambda: seconds)
    assert ("\nOther processes took 75% of" in ended(measured)) == (seconds[0] == 7.5)


def test_no_single_call_decides(measured):
    """One slow call, when another process took the processor, does not change the ratios, nor do two sizes."""
    site = module.Site()
    site.sizes = {4: [(3e-6, 1e-6)] * 9 + [(3e-6, 5e-3), (9e-3, 1e-6)], 20: [(2e-3, 1e-3)] * 3}
    assert [round(ratio, 2) for ratio in site.ratios()] == [2.0, 2.0, 2.0]


def test_calls_from_several_threads(measured):
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda n: np.tile([n], 2), range(1200)):
            pass
    assert [row["calls"] for row in rows(measured)] == [1200]
    measured.cost = 1e6  # each thread's, while others measured too
    measured.threads |= {-1, -2}
    assert re.search("in [3-6] threads together, within [1-9]", ended(measured))


def test_the_printed_table(measured, monkeypatch):
    monkeypatch.setattr(os, "times", lambda: measured.times)
    monkeypatch.setattr(process, "UNTIMED", set())  # another test may have had children
    begin = "\ntilecore profile: numpy.tile was not called in this process\nNot measured: calls in functions "
    shown = ended(measured)
    assert shown.startswith(begin) and "replace_numpy_tile" in shown and "num_workers=0" not in shown
    monkeypatch.setattr(os, "times", lambda: (1, 1, 7, 0, 1))
    measured.start()  # again, with these times
    exec(compile("np.tile(np.zeros(3), 2)", "a\nb", "exec"), {"np": np})
    monkeypatch.setattr(os, "times", lambda: (10, 10, 9, 0.5, 9))
    shown = ended(measured)
    row = r" ~[0-9.e+]+x +1 +48 B\n +a\\nb:1 <module>\n +\(3,\), float64, C, 2; measured 1 of 1 calls\n"
    assert re.search(row, shown)
    assert "\nChild processes took 2.5 s, and are not measured. To measure their work, " in shown


@pytest.mark.tree
def test_the_table_in_the_documentation_is_one(monkeypatch):
    """As this version would print its numbers."""
    monkeypatch.setattr(table, "WIDTH", 80)
    (few,) = re.findall(r'"(too short to matter[^"]+)"', inspect.getsource(module.Site.choose_hint))
    names = "file line function code calls measured bytes numpy_seconds tilecore_seconds range hint inputs".split()
    code = 'return np.concatenate([np.tile(vector, (1000, 1)), np.ones((1000, 64), "f4")], axis=1)'
    inputs, ratios = ["(256,), float32, C, (1000, 1)"], (4.45, 5.68)
    sites = [("loop.py", 7, "embed", code, 500, 108, 512e6, 1.5087, 0.3064, ratios, module.VIEW, inputs)]
    code, ratios = 'names = np.tile(["a", "b"], 3)', (1.56, 7.06)
    sites += [("loop.py", 13, "<module>", code, 50, 50, 1200, 42.13e-3, 12.14e-3, ratios, few, ["list, 3"])]
    totals = dict(enumerate([5.289, 0.3832, 1.5509, 0.3186]))
    note = "296,582 page faults, 1.11 s of system time: `tilecore compare` shows what the whole program gains."
    shown = table.make_table(totals, [dict(zip(names, site, strict=True)) for site in sites], 1, "", note)
    page = Path(__file__).parent.parent / "docs" / "profile.md"
    assert f"```text{shown}\n```" in page.read_text(encoding="utf-8"), shown


@pytest.mark.parametrize("columns", [60, 80])
def test_lines_fit_the_terminal(columns, measured, monkeypatch):
    monkeypatch.setattr(table, "WIDTH", columns)
    monkeypatch.setattr(os, "times", lambda: (0, 0, 9, 0, 0))
    monkeypatch.setattr(process, "processor_seconds", lambda: (9e9, 9e9))
    name = "/a-folder/of-a/" + "long-path/" * 20 + "x.py"
    exec(compile("def f(x): np.tile(np.zeros((1, 9999)), (2, 1))\nf(1)", name, "exec"), {"np": np})
    monkeypatch.setattr(module, "perf_counter", lambda: measured.started)  # as if it had taken all the time
    shown = ended(measured)
    assert max(map(len, shown.splitlines())) in range(columns - 12, columns + 1)
    words = "Other processes took 100% of the processors' time: times may be too long. numpy.tile broadcasting".split()
    assert not {*words} - {*shown.split()} and name in re.sub(r"\n +", "", shown)


def test_streams_that_refuse_the_text():
    for encoding, shown in {"ascii": rb"\xe9\u20ac", "iso8859-2": rb"\xe9\u20ac", "iso8859-15": b"\xe9\xa4"}.items():
        file = TextIOWrapper(raw := BytesIO(), encoding)
        process.print_text("\u00e9\u20ac", file)
        assert raw.getvalue().rstrip() == shown
    (closed := StringIO()).close()
    (detached := TextIOWrapper(BytesIO())).detach()
    for write in (lambda text: os.read(-1, 1), (written := []).append):  # streams of Python code, which need no `flush`
        process.print_text("text", SimpleNamespace(write=write))
    assert written == ["text", "\n"]
    for file in (closed, detached):
        process.print_text("text", file)
    with pytest.raises(ValueError, match="invalid literal"):  # Python code may be a signal handler's
        process.print_text("text", type("", (StringIO,), {"write": lambda self, text: int(text)})())
