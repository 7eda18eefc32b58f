"""The command line: what it takes, what it prints, how it ends. tests/test_files.py has the tiling."""

import errno
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import tilecore
from tilecore import _process as process
from tilecore._cli import commands, demo
from tilecore._cli import main as cli

pytestmark = pytest.mark.process
SETTINGS = ("TILECORE_MAX_BYTES", "TILECORE_RECYCLE_BYTES", "TILECORE_NUM_THREADS", "TILECORE_ISA")
REPEATS = ["--repeats", "2,3"]
MEGABYTES = ["--repeats", "1000,1000"]  # of (2, 3) float32: 24 MB


def start(*arguments, cwd, **how):
    command = [sys.executable, "-m", "tilecore", *arguments]
    pipes = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=cwd, **pipes | how)


def run(*arguments, cwd, data=None, **how):
    """How it ended, and what it printed."""
    process = start(*arguments, cwd=cwd, **how if data is None else {"stdin": subprocess.PIPE} | how)
    return process.communicate(data, timeout=120) + (process.returncode,)


@pytest.mark.parametrize("arguments, text", [
    (["no-such-command"], "invalid choice"), (["tile"], "required"), (["demo", "3"], "unrecognized"),
    (["tile", "absent", "-", "--repeats=2"], "absent: No such file or directory\n"),
    (["run", "abs\nent"], "abs ent: No such file or directory\n"),
])  # fmt: skip
def test_errors_are_one_line(arguments, text, tmp_path, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("tilecore: ") and err.count("\n") == 1 and text in err
    assert run(*arguments, cwd=tmp_path) == (out, err, 2)


def test_a_reader_that_leaves_early(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    assert run("info", cwd=tmp_path, stdout=writer) == (None, "", 0)
    os.close(writer)


@pytest.mark.quick
def test_version_and_help(capsys):
    for option in (["--version"], *([name, "--help"] for name in ("tile", "run", "profile", "compare")), ["--help"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(option)
        assert stopped.value.code == 0
        assert "tilecore" in (printed := capsys.readouterr().out)
    assert cli.main([]) == 0 and printed == capsys.readouterr().out


def test_info_prints_the_settings_or_one_folder(capsys, tmp_path):
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    tilecore.show_config()
    assert printed and printed == capsys.readouterr().out
    assert run("info", "--include", cwd=tmp_path) == (tilecore.get_include() + "\n", "", 0)
    for option, file in {"--cmake": "tilecoreConfig.cmake", "--pkgconfig": "tilecore.pc"}.items():
        assert cli.main(["info", option]) == 0
        assert os.path.exists(os.path.join(capsys.readouterr().out.rstrip("\n"), file))


@pytest.mark.parametrize("values, read", [
    ("1000 0 13", "1000 0 13"), ("4K 64M 1", f"4096 {64 << 20} 1"), ("4kb 3MiB 1", f"4000 {3 << 20} 1"),
    ("2g 0 1", f"{2 << 30} 0 1"), ("99999999T 999999999999T 1", f"{sys.maxsize} {sys.maxsize} 1"),
])  # fmt: skip
def test_settings_of_the_environment(values, read, program):
    code = "print(tilecore.get_max_bytes(), tilecore.get_recycle_limit(), tilecore.get_num_threads())"
    assert program(code, **dict(zip(SETTINGS, values.split(), strict=False))).split() == read.split()
    if values == read:
        assert program(code, **dict.fromkeys(SETTINGS, "")) == program(code)


@pytest.mark.parametrize(("variable", "text"), [
    *[(SETTINGS[0], text) for text in ("2\N{KELVIN SIGN}", "-1")],
    *[(SETTINGS[2], text) for text in ("0", "-2", "2_0", "\N{ARABIC-INDIC DIGIT THREE}")],
    *[(SETTINGS[1], "much"), (SETTINGS[3], "much")],
])  # fmt: skip
def test_a_malformed_setting_is_an_error_of_the_import(variable, text, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, text)
    out, err, code = run("info", cwd=tmp_path)
    assert (code, out) == (1, "") and f"\nValueError: environment variable {variable}: expected " in err


@pytest.mark.quick
def test_demo_shows_examples_and_times(capsys, monkeypatch):
    monkeypatch.setattr(demo, "ROUNDS", 3)
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    examples = [("NumPy: whole copies, side by side", "tilecore.tile(x, (2, 2))")]
    for name, dialect in commands.DIALECTS.items():
        what, repeats = dialect.example
        examples.append((f"{dialect.version().name}: {what}", f"tilecore.{name}.tile(x, {repeats})"))
    assert re.findall(r"^(.+)\n\n    >>> (.*?)    #", shown, re.M) == examples
    timed = re.findall(r"^(.+?) +[\d.]+ \w?B +[\d.]+ \w?s +[\d.]+ \w?s +[\d.]+x$", shown, re.M)
    assert timed == [*demo.TIMED, "image times a mask"]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.quick
@pytest.mark.parametrize("busy, every", [(0.9, 1.0), (0.1, 1.0), (0.04, 0.04)])
def test_demo_on_a_busy_machine(busy, every, capsys, monkeypatch):
    """It counts a thread's own time on a processor, and says that others had much of it, if that is known."""
    took, seconds = iter(range(10**9)), iter([(0.0, 0.0), (busy, every)])
    monkeypatch.setattr(demo, "TIMED", dict([*demo.TIMED.items()][:2]))
    monkeypatch.setattr(demo, "clock", lambda: next(took))
    for module in (demo, process):
        monkeypatch.setattr(module, "processor_seconds", lambda: next(seconds))
    demo.demo({})
    shown = capsys.readouterr().out
    assert len(re.findall(" 10 ms +10 ms +1.0x$| 1 s +1 s +1.0x$", shown, re.M)) == len(demo.TIMED) + 1
    told = "\nOther processes took 90% of the processors' time: times may be too long.\n"
    assert shown.endswith(told) == (busy > 0.5)


@pytest.mark.quick
def test_demo_refuses_a_wrong_result():
    with pytest.raises(ValueError, match="wrong result"):
        demo.verify(np.array([1, 2, 2, 1]), np.array([1, 2]), (2,))
    with pytest.raises(ValueError, match="wrong result"):
        demo.verify(np.array([1, 2, 1, 2], "int32"), np.array([1, 2], "int64"), (2,))


@pytest.mark.quick
@pytest.mark.parametrize(("options", "repeats"), [
    ("--repeats 2,3", (2, 3)), ("--repeats 2", (1, 2)), ("--repeats 4,1,2", (4, 1, 2)),
    ("--repeats 2,0 --dialect onnx", (2, 0)), ("--repeats 2,3 --dialect onnx --opset 6", (2, 3)),
    *[(f"--repeats{s}-1,2 --dialect openvino", (0, 2)) for s in "= "],
    ("--repeats 3 --axis 0", (3, 1)), ("--repeats 3,2 --axis -1,0", (2, 3)),
    ("--repeats 2,3 --dialect directml --feature-level 4_0", (2, 3)),
])  # fmt: skip
def test_tile_writes_what_the_options_ask(options, repeats, source, capsys, oracle):
    target = source.with_name("out.npy")
    assert cli.main(["tile", str(source), str(target), *options.split()]) == 0
    assert capsys.readouterr() == ("", "")
    want = oracle(np.load(source), repeats)
    np.testing.assert_array_equal(np.load(target), want, strict=True)


OPSET = "argument --opset: expected the opset of ONNX, 6 or higher, got '"
INTEGERS = "expected integers such as 2,3, got '"


@pytest.mark.parametrize("options, text", [
    ("", "the following arguments are required: --repeats"),
    *[(f"--repeats {n}", f"argument --repeats/--reps: {INTEGERS}{n}'") for n in ("2,x", "2,", "1.5")],
    ("--reps=", f"argument --repeats/--reps: {INTEGERS}'"),
    pytest.param(f"--repeats {'7' * 5000}", "got '777777777777...7777777777777'\n", id="5000 digits"),
    *[(f"--repeats {n} 2", "arguments: 2; write several repeats as one argument, such as 2,2") for n in (2, -1)],
    ("--repeats 2 x", "unrecognized arguments: x\n"),
    ("--repeats -1,2", "tile: --repeats must not be negative, got -1 for axis 0; input shape (2, 3), dtype float"),
    ("--repeats -2 --axis -1", "got -2; input shape (2, 3), dtype float32, --repeats '-2', --axis '-1'\n"),
    ("--repeats 3 --axis 0,1", "tile: --repeats must have as many entries as axis, 2, got 1"),
    ("--repeats 3 --axis x", f"argument --axis: {INTEGERS}x'"),
    ("--repeats 3 --axis 0 --dialect onnx", "--axis is for --dialect numpy,"),
    ("--repeats 1,2 --dialect numpi", "argument --dialect: invalid choice"),
    ("--repeats 2 --dialect onnx", "ONNX Tile-13: --repeats has length 1"),
    ("--repeats=1,-1 --dialect onnx --opset 7", "ONNX Tile-6: --repeats must n"),
    *[(f"--repeats 2,1 --dialect onnx --opset {n}", f"{OPSET}{n}'") for n in "5x"],
    ("--repeats 2,1 --opset 13", "--opset is for --dialect onnx, not numpy"),
    ("--repeats 2,1 --feature-level 4_1", "--feature-level is for --dialect dir"),
    ("--repeats 2,1 --dialect directml --feature-level 9", "argument --feature-"),
    ("--repeats 2,0 --dialect directml", "DirectML Tile, feature level 4_1: --re"),
])  # fmt: skip
def test_refused_options_are_one_line(options, text, source, capsys):
    assert cli.main(["tile", str(source), str(source.with_name("out.npy")), *options.split()]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("tilecore: ") and text in err
    assert os.listdir(source.parent) == ["in.npy"]


@pytest.mark.quick
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_nothing(name, source, usual_signals, monkeypatch, capsys):
    """Nor do others that come while the temporary file is removed, or later."""
    number = getattr(signal, name, None) or pytest.skip("not on this system")
    unlink = os.unlink

    @contextmanager
    def progress(total):
        def advance(nbytes):  # the first slab has been written, and the temporary file is there
            assert 0 < nbytes < total
            signal.raise_signal(number)

        yield advance

    monkeypatch.setattr(commands, "progress_bar", progress)
    monkeypatch.setattr(os, "unlink", lambda path: [*map(signal.raise_signal, usual_signals), unlink(path)])
    arguments = ["tile", str(source), str(source.with_name("out.npy")), *MEGABYTES]
    assert cli.main(arguments) == 128 + number
    assert capsys.readouterr() == ("", "tilecore: interrupted\n")
    assert os.listdir(source.parent) == ["in.npy"]
    assert {signal.getsignal(number) for number in usual_signals} == {signal.SIG_IGN}  # Python's own end keeps it


@pytest.mark.quick
def test_a_signal_while_handlers_change(usual_signals, monkeypatch, capsys):
    def change(number, handler, change=signal.signal):
        change(number, handler)
        if callable(handler):
            signal.raise_signal(number)

    monkeypatch.setattr(signal, "signal", change)
    assert (cli.main(["info"]), *capsys.readouterr()) == (130, "", "tilecore: interrupted\n")


@pytest.mark.quick
def test_handlers_are_those_from_before(usual_signals, source):
    assert cli.main(["tile", str(source), str(source.with_name("out.npy")), "--repeats", "2"]) == 0
    assert {number: signal.getsignal(number) for number in usual_signals} == usual_signals


@pytest.mark.skipif(os.name != "posix", reason="a signal to another process")
@pytest.mark.usefixtures("usual_signals")
def test_an_interrupt_does_not_wait_for_a_reader_that_has_stopped(source):
    reader, writer = os.pipe()
    process = start("tile", "in.npy", "-", *MEGABYTES, cwd=source.parent, stdout=writer)
    os.close(writer)
    assert os.read(reader, 1) == b"\x93"  # it has begun, and soon the pipe is full
    process.send_signal(signal.SIGINT)
    assert (process.communicate(timeout=120)[1], process.returncode) == ("tilecore: interrupted\n", 130)
    os.close(reader)


@pytest.mark.skipif(os.name != "posix", reason="a pipe that does not block")
def test_a_pipe_that_does_not_block(source):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = start("tile", "in.npy", "-", *MEGABYTES, cwd=source.parent, stdout=writer)
    os.close(writer)
    with open(reader, "rb") as file:
        assert len(file.read()) == 128 + 24_000_000
    assert (process.communicate(timeout=120)[1], process.returncode) == ("", 0)


@pytest.mark.quick
@pytest.mark.skipif(os.name != "posix", reason="a pipe that does not block")
def test_standard_input_that_does_not_block(source, monkeypatch):
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    parts = [source.read_bytes()[:99], source.read_bytes()[99:]]

    def select(*waits_for):
        assert waits_for == ([sys.stdin], [], [])
        if parts:
            os.write(writer, parts.pop(0))
        else:
            os.close(writer)

    monkeypatch.setattr("select.select", select)
    with open(reader) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert cli.main(["tile", "-", str(source.with_name("out.npy")), "--repeats", "2"]) == 0


@pytest.mark.quick
@pytest.mark.skipif(os.name != "posix", reason="Windows starts a child process")
def test_the_program_gets_every_signal(usual_signals, monkeypatch, capsys):
    """Also one that comes while the system is told of the program's many arguments."""
    handlers = []

    def execve(*_):
        handlers.extend(map(signal.getsignal, usual_signals))
        raise OSError(errno.E2BIG, "too many")

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(re, "findall", None)  # it looks at all arguments
    assert (cli.main(["run", "-c", "pass"]), capsys.readouterr().err) == (2, "tilecore: too many\n")
    assert handlers == [signal.SIG_DFL] * 3
    assert {number: signal.getsignal(number) for number in usual_signals} == usual_signals


@pytest.mark.quick
def test_a_full_temporary_folder(monkeypatch, capsys):
    def write(fd, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"data")))
    monkeypatch.setattr(os, "write", write)
    assert cli.main(["tile", "-", "-", "--repeats", "2"]) == 2
    assert capsys.readouterr().err == f"tilecore: {tempfile.gettempdir()}: No space left on device\n"


@pytest.mark.skipif(os.name != "posix", reason="sh closes the streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_the_standard_streams(closed, source, oracle):
    """Daemons start programs this way. An error is not written to the output instead."""

    def ends(arguments):
        line = f'"$0" -m tilecore tile {arguments} --repeats 2 {closed}'
        done = subprocess.run(["sh", "-c", line, sys.executable], cwd=source.parent, capture_output=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert ends("in.npy out.npy") == (0, b"", b"")
    np.testing.assert_array_equal(np.load(source.with_name("out.npy")), oracle(np.load(source), 2), strict=True)
    assert ends("absent.npy -")[:2] == (2, b"")


def open_terminal():
    try:
        return pytest.importorskip("pty").openpty()
    except OSError:
        pytest.skip("no pseudo-terminals, /dev/pts")


def test_progress_on_a_terminal(source):
    pytest.importorskip("tqdm")
    ours, theirs = open_terminal()
    pytest.importorskip("termios").tcsetwinsize(theirs, (24, 80))
    process = start("tile", "in.npy", "out.npy", *MEGABYTES, cwd=source.parent, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # Linux reports so that nobody writes any more
        while more := os.read(ours, 10_000):
            shown += more
    os.close(ours)
    assert process.wait(60) == 0 and b"100%" in shown and b"24.0M/24.0M" in shown


@pytest.mark.quick
def test_no_progress_without_tqdm(source, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert cli.main(["tile", str(source), str(source.with_name("out.npy")), "--repeats", "2,2"]) == 0


def test_a_pipe_and_a_redirected_file(source):
    folder = source.parent

    def tiled(source, target, **how):
        out, err, code = run("tile", source, target, *REPEATS, cwd=folder, text=False, **how)
        assert (code, err) == (0, b"")
        return out

    tiled("in.npy", "out.npy")
    want = (folder / "out.npy").read_bytes()
    assert tiled("-", "-", data=source.read_bytes()) == want
    assert tiled("in.npy", "-") == want
    with open(source, "rb") as file:
        assert tiled("-", "-", stdin=file) == want
    tiled("-", "./-", data=source.read_bytes())  # a file of that name
    assert (folder / "-").read_bytes() == want
    assert sorted(os.listdir(folder)) == ["-", "in.npy", "out.npy"]


@pytest.mark.parametrize("arguments, text", [("- out.npy", "input"), ("in.npy -", "output")])
def test_a_terminal_is_refused(arguments, text, source):
    ours, theirs = open_terminal()
    expected = f"tilecore: standard {text} is closed or a terminal, expected a file or a pipe\n"
    command = ["tile", *arguments.split(), *REPEATS]
    assert run(*command, cwd=source.parent, stdin=theirs, stdout=theirs) == (None, expected, 2)
    os.close(ours)
    os.close(theirs)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="not on this system")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("stream, arguments", [
    ("stdout", "tile in.npy - --repeats 2"), ("stdout", "info"), ("stderr", "tile absent.npy - --repeats 2"),
])  # fmt: skip
def test_a_full_disk_behind_a_stream(stream, arguments, unbuffered, source, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "wb") as full:
        ended = run(*arguments.split(), cwd=source.parent, **{stream: full})
    named = "standard output: No space left on device"
    assert ended == ((None, f"tilecore: {named}\n", 2) if stream == "stdout" else ("", None, 2))
