"""The command `tilecore compare`: a program with and without tilecore, by turns."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy
import pytest
from processes import ran, written

from tilecore._cli import compare

pytestmark = pytest.mark.process

COMPARED = """
import multiprocessing, numpy, sys
def work(): numpy.ones(6 * 10**6)    # 48 MB
if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start(), child.join(), print("once")
    open("log", "a").write(f"{numpy.tile(numpy.zeros((2, 2)), 2).flags.owndata} ")
    print(sys.stdin.read() or "once too", file=sys.stderr)
"""
needs_wait4 = pytest.mark.skipif(not hasattr(os, "wait4"), reason="Windows")


@needs_wait4
@pytest.mark.parametrize("before", [[], ["run", "-m", "tilecore"]])
def test_compare_runs_by_turns_and_shows_the_program_once(before, tmp_path):
    written(tmp_path, {"script.py": COMPARED})
    command = ["-m", "tilecore", *before, "compare", "--rounds", "2", "--json", "-", "script.py"]
    code, out, err = ran(tmp_path, *command)
    assert code == 0 and out.startswith("once\n{")
    assert err.startswith("once too\n\ntilecore compare: 2 runs each, by turns")
    assert (tmp_path / "log").read_text() == "False True " * 2
    found = json.loads(out[5:])
    assert [*found] == ["plain", "tilecore"]
    for side in found.values():
        assert [*side] == ["seconds", "processor_seconds", "page_faults", "peak_bytes"]
        assert min(side["processor_seconds"]) > 0 and min(side["page_faults"]) > 3000 and min(side["peak_bytes"]) > 48e6
    ratio = numpy.median(found["plain"]["seconds"]) / numpy.median(found["tilecore"]["seconds"])
    assert re.search(rf"\nelapsed time +[\d.]+ m?s \(.* to .* m?s\) .* {ratio:.2f}x\n", err) and " clear\n" not in err
    assert max(map(len, err.splitlines())) <= 80


def test_compare_marks_what_is_clear():
    sides = [{key: [n, n + 1, n + 2] for key in compare.KEYS} for n in (3, 2, 6)]
    marks = [compare.make_table(sides[0], side, "").count("x clear\n") for side in sides]
    assert marks == [0, 0, 4] and "\npeak memory               4 B (3 to 5 B) " in compare.make_table(*sides[:2], "")


@needs_wait4
@pytest.mark.parametrize("code, ends, told", [
    ("import sys; print('why', file=sys.stderr); sys.exit(3)", 3, "why\n{}3 (plain){}"),
    ("import os, sys; 'PYTHONPATH' in os.environ and sys.exit('why')", 1, "why\n{}1 (tilecore){}"),
    ("import os; os.kill(os.getpid(), 15)", 143, "{}143 (plain){}"),
    ("import sys; sys.path.insert(0, 'own'); import numpy", 2, "tilecore: "),
])  # fmt: skip
def test_compare_ends_with_a_program_that_fails(code, ends, told, tmp_path):
    written(tmp_path, {"own/numpy.py": ""})
    done = ran(tmp_path, "-m", "tilecore", "compare", "-c", code)
    told = told.format("tilecore: the program ended with exit code ", "; nothing is compared\n")
    assert done[:2] == (ends, "") and done[2].startswith(told) and "elapsed" not in done[2]


@needs_wait4
@pytest.mark.parametrize("closed", [0, 1])
def test_compare_without_standard_streams(closed, tmp_path):
    program = "import os, sys; os.write(2, b'why'); sys.exit('PYTHONPATH' in os.environ)"
    command = [sys.executable, "-m", "tilecore", "compare", "-c", program]
    options = {"cwd": tmp_path, "text": True, "preexec_fn": lambda: os.close(closed)}
    done = subprocess.run(command, stderr=subprocess.PIPE, **options)
    told = "whywhytilecore: the program ended with exit code 1 (tilecore); nothing is compared\n"
    assert (done.returncode, done.stderr) == (1, told)


@needs_wait4
@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("ignored", ["", "signal.pthread_sigmask(signal.SIG_BLOCK, {1, 2, 15}); "])
def test_a_signal_ends_the_program_that_is_compared(name, ignored, tmp_path):
    code = f"import os, signal, time; {ignored}print(os.getpid(), flush=True); time.sleep(60)"
    command = [sys.executable, "-m", "tilecore", "compare", "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)
    child = int(process.stdout.readline())
    process.send_signal(number := getattr(signal, name))
    out, err = process.communicate(timeout=50)
    assert (out, process.returncode) == ("", 128 + number) and err.endswith("tilecore: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
