"""The command line: what it takes, what it prints, how it ends. tests/test_files.py has the tiling."""

import errno
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import tilecore
from tilecore._cli import main as cli

pytestmark = pytest.mark.process


def start(*arguments, cwd, **how):
    return subprocess.Popen([sys.executable, "-m", "tilecore", *map(str, arguments)], cwd=cwd, text=True, **how)


def run(*arguments, cwd):
    process = start(*arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def source(tmp_path):
    """A .npy file of shape (2, 3), and the folder it is in."""
    np.save(tmp_path / "in.npy", np.arange(6, dtype="f4").reshape(2, 3))
    return tmp_path / "in.npy"


@pytest.mark.parametrize("arguments", [("no-such-command",), ("tile",), ("demo", "--no-such-option")])
def test_errors_are_one_line(arguments, tmp_path, capsys):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("tilecore: ") and err.count("\n") == 1
    assert run(*arguments, cwd=tmp_path) == (2, out, err)


def test_a_reader_that_leaves_early(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    process = start("info", cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 0


@pytest.mark.quick
def test_version_and_help(capsys):
    for option in (["--version"], ["--help"], ["tile", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(option)
        assert stopped.value.code == 0
        assert "tilecore" in capsys.readouterr().out


def test_the_name_alone_prints_the_help(capsys, tmp_path):
    assert cli.main([]) == 0
    printed = capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert printed == capsys.readouterr().out != ""
    assert run(cwd=tmp_path)[::2] == (0, "")


def test_info_is_show_config(capsys):
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    tilecore.show_config()
    assert printed == capsys.readouterr().out != ""


def test_info_include_is_get_include(tmp_path):
    assert run("info", "--include", cwd=tmp_path) == (0, tilecore.get_include() + "\n", "")


@pytest.mark.quick
def test_the_smallest_memory_stands_in_the_help(capsys, source):
    with pytest.raises(SystemExit):
        cli.main(["tile", "--help"])
    least = re.search(r"([0-9]+M) or more", capsys.readouterr().out)[1]
    target = str(source.with_name("out.npy"))
    assert cli.main(["tile", str(source), target, "--repeats", "2", "--memory", least]) == 0


@pytest.mark.parametrize("variable", ["TILECORE_MAX_BYTES", "TILECORE_NUM_THREADS", "TILECORE_ISA"])
def test_a_malformed_environment_variable_is_an_error_of_the_import(variable, tmp_path, monkeypatch):
    monkeypatch.setenv(variable, "much")
    code, out, err = run("info", cwd=tmp_path)
    assert (code, out) == (1, "")
    assert f"\nValueError: environment variable {variable}: expected " in err


# ---------------------------------------------------------------- tile


@pytest.mark.quick
@pytest.mark.parametrize(
    "options, repeats",
    [
        (["--repeats", "2,3"], (2, 3)),
        (["--repeats", "2", "--memory", "100M"], (1, 2)),
        (["--repeats", "4,1,2"], (4, 1, 2)),
        (["--repeats", "2,0", "--dialect", "onnx"], (2, 0)),
        (["--repeats", "2,3", "--dialect", "onnx", "--opset", "6"], (2, 3)),
        (["--repeats=-1,2", "--dialect", "openvino"], (0, 2)),
        (["--repeats", "-1,2", "--dialect", "openvino"], (0, 2)),
        (["--repeats", "3", "--axis", "0"], (3, 1)),
        (["--repeats", "3,2", "--axis", "-1,0"], (2, 3)),
        (["--repeats", "2,3", "--dialect", "directml", "--feature-level", "4_0"], (2, 3)),
    ],
)
def test_tile(options, repeats, source, capsys, oracle):
    target = source.with_name("out.npy")
    assert cli.main(["tile", str(source), str(target), *options]) == 0
    assert capsys.readouterr() == ("", "")
    want = oracle(np.load(source), repeats)
    np.testing.assert_array_equal(np.load(target), want, strict=True)


OPSET = "argument --opset: expected N of ONNX, 6 or more, got '"


@pytest.mark.parametrize(
    "options, text",
    [
        ([], "the following arguments are required: --repeats"),
        (["--repeats", "2,x"], "argument --repeats: expected integers such as 2,3, got '2,x'"),
        (["--repeats", "2,"], "expected integers"),
        (["--repeats", "1.5"], "expected integers"),
        (["--repeats", ""], "argument --repeats: expected integers such as 2,3, got ''"),
        (["--repeats", "-1,2"], "tile: --repeats must not be negative, got -1 for axis 0; input"),
        (["--repeats", "1,9" + 30 * "0"], "tile: axis 1 overflows"),
        (["--repeats", "3", "--axis", "2"], "tile: axis 2 is out of bounds for array of dimension 2"),
        (["--repeats", "3", "--axis", "-3"], "tile: axis -3 is out of bounds for array of dimensi"),
        (["--repeats", "3,2", "--axis", "1,-1"], "tile: repeated axis"),
        (["--repeats", "3", "--axis", "0,1"], "tile: --repeats must have one entry for each of th"),
        (["--repeats", "3", "--axis", "x"], "argument --axis: expected integers such as 2,3, got"),
        (["--repeats", "3", "--axis", "0", "--dialect", "onnx"], "--axis is for --dialect numpy,"),
        (["--repeats", "1,2", "--dialect", "numpi"], "argument --dialect: invalid choice"),
        (["--repeats", "2", "--dialect", "onnx"], "ONNX Tile-13: --repeats has length 1"),
        (["--repeats=1,-1", "--dialect", "onnx", "--opset", "7"], "ONNX Tile-6: --repeats must n"),
        (["--repeats", "2,1", "--dialect", "onnx", "--opset", "5"], OPSET + "5'"),
        (["--repeats", "2,1", "--dialect", "onnx", "--opset", "x"], OPSET + "x'"),
        (["--repeats", "2,1", "--opset", "13"], "--opset is for --dialect onnx, not numpy"),
        (["--repeats", "2,1", "--feature-level", "4_1"], "--feature-level is for --dialect dir"),
        (["--repeats", "2,1", "--dialect", "directml", "--feature-level", "9"], "argument --feature-"),
        (["--repeats", "2,0", "--dialect", "directml"], "DirectML Tile, feature level 4_1: --re"),
        (["--repeats", "2,1", "--memory", "much"], "argument --memory: expected a number of bytes"),
        (["--repeats", "2,1", "--memory", "1M"], "argument --memory: expected 68M or more, got '1M'"),
    ],
)
def test_what_is_refused(options, text, source, capsys):
    assert cli.main(["tile", str(source), str(source.with_name("out.npy")), *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith("tilecore: ") and text in err
    assert os.listdir(source.parent) == ["in.npy"]


@pytest.mark.quick
def test_a_refusal_speaks_of_what_was_typed(source, capsys):
    target = str(source.with_name("out.npy"))
    assert cli.main(["tile", str(source), target, "--repeats", "-2", "--axis", "-1"]) == 2
    assert capsys.readouterr().err == (
        "tilecore: tile: --repeats must not be negative, got -2; "
        "input shape (2, 3), dtype float32, --repeats '-2', --axis '-1'\n"
    )


def stopped(monkeypatch, stop):
    """Let `stop()` happen when the first slab has been written, with the temporary file there."""

    @contextmanager
    def progress(total):
        def advance(nbytes):
            assert 0 < nbytes < total
            stop()

        yield advance

    monkeypatch.setattr(cli, "progress_bar", progress)


MEGABYTES = ["--repeats", "1000,1000"]  # of (2, 3) float32: 24 MB


@pytest.mark.quick
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_nothing(name, source, monkeypatch, capsys):
    number = getattr(signal, name, None) or pytest.skip("not on this system")
    stopped(monkeypatch, lambda: signal.raise_signal(number))
    arguments = ["tile", str(source), str(source.with_name("out.npy")), *MEGABYTES]
    before = signal.signal(number, signal.SIG_DFL)  # nohup makes it SIG_IGN
    assert cli.main(arguments) == 128 + number
    assert signal.signal(number, before) is signal.SIG_DFL
    assert capsys.readouterr() == ("", "tilecore: interrupted\n")
    assert os.listdir(source.parent) == ["in.npy"]


@pytest.mark.whole_process
@pytest.mark.quick
@pytest.mark.parametrize("second", ["SIGINT", "SIGTERM"])
def test_a_second_signal_does_not_cut_short_what_the_first_began(second):
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    cleaned = False
    with pytest.raises(KeyboardInterrupt) as end, cli.interrupted_by_signals():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(getattr(signal, second))
            cleaned = True
    assert cleaned and end.value.args == (signal.SIGTERM,)
    signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(os.name != "posix", reason="a signal to another process")
@pytest.mark.usefixtures("heard")
def test_an_interrupt_does_not_wait_for_a_reader_that_has_stopped(source):
    reader, writer = os.pipe()
    process = start("tile", "in.npy", "-", *MEGABYTES, cwd=source.parent, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert os.read(reader, 1) == b"\x93"  # it has begun, and soon the pipe is full
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[1] == "tilecore: interrupted\n"
    assert process.returncode == 130
    os.close(reader)


@pytest.mark.skipif(os.name != "posix", reason="sh closes them")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_the_standard_streams(closed, source, oracle):
    """As a daemon starts its programs."""
    line = f'"$0" -m tilecore tile in.npy out.npy --repeats 2 {closed}'
    folder = source.parent
    done = subprocess.run(["sh", "-c", line, sys.executable], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    want = oracle(np.load(source), 2)
    np.testing.assert_array_equal(np.load(folder / "out.npy"), want, strict=True)


@pytest.mark.skipif(os.name != "posix", reason="sh closes it")
def test_an_error_that_nobody_listens_to_is_no_output(source):
    line = '"$0" -m tilecore tile absent.npy - --repeats 2 2>&-'
    done = subprocess.run(["sh", "-c", line, sys.executable], cwd=source.parent, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.quick
def test_an_error_half_way_leaves_what_was_there(source, monkeypatch, capsys):
    target = source.with_name("out.npy")
    target.write_bytes(b"as it was")

    def fail():
        assert len(os.listdir(source.parent)) == 3
        raise OSError(errno.ENOSPC, "No space left on device")

    stopped(monkeypatch, fail)
    assert cli.main(["tile", str(source), str(target), *MEGABYTES, "--force"]) == 2
    assert capsys.readouterr().err == f"tilecore: {target}: No space left on device\n"
    assert sorted(os.listdir(source.parent)) == ["in.npy", "out.npy"]
    assert target.read_bytes() == b"as it was"


def test_a_file_that_exists_needs_force(source, capsys, oracle):
    target = source.with_name("out.npy")
    target.write_bytes(b"as it was")
    arguments = ["tile", str(source), str(target), "--repeats", "2"]
    assert cli.main(arguments) == 2
    want = f"tilecore: {target}: exists already; --force replaces it\n"
    assert capsys.readouterr().err == want
    assert target.read_bytes() == b"as it was"
    assert cli.main([*arguments, "--force"]) == 0
    np.testing.assert_array_equal(np.load(target), oracle(np.load(source), 2), strict=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="not on this system")
def test_killed_half_way(source):
    code = f"""
import os, signal
from contextlib import nullcontext
from tilecore._cli import main as cli
kill = lambda nbytes: os.kill(os.getpid(), signal.SIGKILL)
cli.progress_bar = lambda total: nullcontext(kill)
cli.main(["tile", "in.npy", "out.npy", *{MEGABYTES}])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=source.parent, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not source.with_name("out.npy").exists()


class TestProgress:
    def shown(self, source, *prepared):
        """What a terminal gets."""
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        pytest.importorskip("termios").tcsetwinsize(theirs, (24, 80))
        code = ["import sys", *prepared, "from tilecore.__main__ import main", "sys.exit(main())"]
        command = [sys.executable, "-c", "; ".join(code), "tile", "in.npy", "out.npy", *MEGABYTES]
        process = subprocess.Popen(command, cwd=source.parent, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while more := os.read(ours, 10_000):
                shown += more
        except OSError:  # Linux' way to tell that nobody writes any more
            pass
        os.close(ours)
        assert process.wait(60) == 0
        return shown

    def test_of_tqdm(self, source):
        pytest.importorskip("tqdm")
        shown = self.shown(source)
        assert b"100%" in shown and b"24.0M/24.0M" in shown

    def test_a_plain_line_without_tqdm(self, source):
        shown = self.shown(source, "sys.modules['tqdm'] = None")
        lines = shown.rstrip(b"\r\n").lstrip(b"\r").split(b"\r")
        assert lines[0] == b"  4% of 24 MB" and lines[-1] == b"100% of 24 MB"
        assert len(lines) == 23 and b"\n" not in shown[:-1]

    def test_none_without_a_terminal(self, source, monkeypatch, capsys):
        arguments = ["tile", str(source), str(source.with_name("out.npy")), "--repeats", "2,2"]
        assert cli.main(arguments) == 0
        monkeypatch.setitem(sys.modules, "tqdm", None)
        assert cli.main([*arguments, "--force"]) == 0
        assert capsys.readouterr() == ("", "")


class TestStandardStreams:
    REPEATS = ["--repeats", "2,3"]

    def tiled(self, folder, source, target, **how):
        command = [sys.executable, "-m", "tilecore", "tile", source, target, *self.REPEATS]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False, **how)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def test_a_pipe_and_a_redirected_file(self, source):
        folder = source.parent
        self.tiled(folder, "in.npy", "out.npy")
        want = (folder / "out.npy").read_bytes()
        assert self.tiled(folder, "-", "-", input=source.read_bytes()) == want
        assert self.tiled(folder, "in.npy", "-") == want
        with open(source, "rb") as file:
            assert self.tiled(folder, "-", "-", stdin=file) == want
        self.tiled(folder, "-", "./-", input=source.read_bytes())  # a file of that name
        assert (folder / "-").read_bytes() == want
        assert sorted(os.listdir(folder)) == ["-", "in.npy", "out.npy"]

    def test_what_comes_after_other_bytes(self, source):
        folder = source.parent
        self.tiled(folder, "in.npy", "out.npy")
        (folder / "log").write_bytes(b"12345" + source.read_bytes())
        with open(folder / "log", "rb", buffering=0) as file:
            file.read(5)
            assert self.tiled(folder, "-", "-", stdin=file) == (folder / "out.npy").read_bytes()

    def test_what_is_no_npy_file(self, tmp_path):
        command = [sys.executable, "-m", "tilecore", "tile", "-", "-", *self.REPEATS]
        done = subprocess.run(command, cwd=tmp_path, input=b"PK\3\4", capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == (
            b"tilecore: standard input: not a .npy file but a .npz archive, whose arrays numpy.load reads\n"
        )

    @pytest.mark.skipif(os.name != "posix", reason="sh redirects them")
    @pytest.mark.parametrize("source_of", ["in.npy", "- <in.npy"])
    @pytest.mark.parametrize("redirected", ["1<>in.npy", ">>in.npy"])
    def test_the_input_is_not_overwritten(self, source_of, redirected, source):
        before = source.read_bytes()
        given, _, stdin = source_of.partition(" ")
        line = f'"$0" -m tilecore tile {given} - --repeats 2,3 {stdin} {redirected}'
        done = subprocess.run(
            ["sh", "-c", line, sys.executable], cwd=source.parent, stderr=subprocess.PIPE, check=False
        )
        assert done.returncode == 2
        assert done.stderr.startswith(b"tilecore: standard output is the input file")
        assert source.read_bytes() == before

    @pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="not on this system")
    def test_a_name_of_standard_output(self, source):
        log = source.with_name("log")
        with open(log, "wb") as file:
            process = start(
                "tile", "in.npy", "/dev/stdout", "--repeats", "2", "--force",
                cwd=source.parent, stdout=file, stderr=subprocess.PIPE,
            )  # fmt: skip
            inode = os.fstat(file.fileno()).st_ino
            err = process.communicate(timeout=120)[1]
        expected = "expected a new name or a regular file; - is standard output"
        assert err == f"tilecore: /dev/stdout: {expected}\n"
        assert process.returncode == 2 and log.stat().st_ino == inode and log.read_bytes() == b""

    @pytest.mark.parametrize("arguments, text", [("- out.npy", "input"), ("in.npy -", "output")])
    def test_a_terminal_is_refused(self, arguments, text, source):
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        process = start(
            "tile", *arguments.split(), *self.REPEATS, cwd=source.parent,
            stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
        )  # fmt: skip
        expected = f"tilecore: standard {text} is a terminal, expected a file or a pipe\n"
        assert process.communicate(timeout=120)[1] == expected
        assert process.returncode == 2
        os.close(ours)
        os.close(theirs)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="not on this system")
@pytest.mark.parametrize("arguments", ["tile in.npy - --repeats 2", "info", "--version", "--help", "tile --help"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_standard_output(arguments, unbuffered, source, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "wb") as full:
        process = start(*arguments.split(), cwd=source.parent, stdout=full, stderr=subprocess.PIPE)
        assert process.communicate(timeout=120)[1] == "tilecore: No space left on device\n"
    assert process.returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="not on this system")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_error_that_finds_a_full_disk(unbuffered, source, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "wb") as full:
        process = start("tile", "absent.npy", "-", "--repeats", "2", cwd=source.parent, stderr=full)
        assert process.wait(120) == 2


def test_messages_name_the_file_that_the_user_knows(source, capsys):
    absent = str(source.with_name("absent.npy"))
    assert cli.main(["tile", absent, "out.npy", "--repeats", "2"]) == 2
    assert capsys.readouterr().err == f"tilecore: {absent}: No such file or directory\n"
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    target = str(source.with_name("out.npy"))
    try:
        assert cli.main(["tile", str(source), target, *MEGABYTES]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert capsys.readouterr().err == f"tilecore: {target}: File too large\n"
