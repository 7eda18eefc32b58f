"""The command line: what it takes, what it prints, how it ends. tests/test_files.py has the tiling."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import tilecore
from tilecore._cli import errors
from tilecore._cli import main as cli

pytestmark = pytest.mark.process


def start(*arguments, cwd, **how):
    return subprocess.Popen(
        [sys.executable, "-m", "tilecore", *map(str, arguments)], cwd=cwd, text=True, **how
    )


def run(*arguments, cwd):
    process = start(*arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.fixture
def source(tmp_path):
    """A .npy file of shape (2, 3), and the folder it is in."""
    np.save(tmp_path / "in.npy", np.arange(6, dtype="f4").reshape(2, 3))
    return tmp_path / "in.npy"


@pytest.mark.parametrize("arguments", [(), ("no-such-command",), ("demo", "--no-such-option")])
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


@pytest.mark.quick
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


class TestEnvironment:
    VARIABLES = [
        *("TILECORE_MAX_BYTES", "TILECORE_NUM_THREADS", "TILECORE_RECYCLE_BYTES"),
        *("TILECORE_ISA", "TILECORE_FORCE_SCALAR"),
    ]

    @pytest.mark.parametrize("start", [["-m", "tilecore"], ["-Im", "tilecore"], ["-mtilecore"]])
    @pytest.mark.parametrize("variable", VARIABLES)
    def test_what_is_malformed_is_one_line(self, variable, start, tmp_path):
        self.check([sys.executable, *start, "info"], variable, tmp_path)

    def test_of_the_installed_command(self, tmp_path):
        command = shutil.which("tilecore", path=os.path.dirname(sys.executable))
        if command is None:  # no scripts there: pip install --target, say
            command = str(tmp_path / "tilecore")
            with open(command, "w") as file:
                file.write("import sys\nfrom tilecore.__main__ import main\nsys.exit(main())\n")
            return self.check([sys.executable, command, "info"], self.VARIABLES[0], tmp_path)
        self.check([command, "info"], self.VARIABLES[0], tmp_path)

    def check(self, command, variable, folder):
        done = subprocess.run(
            command, cwd=folder, env=os.environ | {variable: "much"}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"tilecore: environment variable {variable}: expected ")
        assert done.stderr.count("\n") == 1

    def test_in_other_programs_it_is_an_exception(self, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "__init__.py").write_text("import tilecore")
        (tmp_path / "mine" / "__main__.py").write_text("")
        env = os.environ | {"TILECORE_MAX_BYTES": "much"}
        for arguments in (["-c", "import tilecore"], ["-m", "mine", "tilecore"]):
            command = [sys.executable, *arguments]
            done = subprocess.run(
                command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 1 and done.stderr.startswith("Traceback")
            assert "\nValueError: environment variable TILECORE_MAX_BYTES" in done.stderr

    @pytest.mark.quick
    @pytest.mark.parametrize(
        ("argv", "original", "expected"),
        [
            (["-m", "info"], ["python", "-X", "dev", "-m", "tilecore", "info"], True),
            (["-m", "info"], ["python", "-Imtilecore", "info"], True),
            (["-m", "tilecore"], ["python", "-m", "mine", "tilecore"], False),
            (["-m"], ["python", "-m", "my_tilecore"], False),
            (["/usr/bin/tilecore", "info"], ["python", "/usr/bin/tilecore", "info"], True),
            (["tilecore.exe"], ["python.exe", "tilecore.exe"], True),
            (["tilecore/mine.py"], ["python", "tilecore/mine.py"], False),
            (["-c"], ["python", "-c", "import tilecore"], False),
            ([""], ["python"], False),
            ([], [], False),
        ],
    )
    def test_which_programs_are_the_command(self, argv, original, expected, monkeypatch):
        monkeypatch.setattr(sys, "argv", argv)
        monkeypatch.setattr(sys, "orig_argv", original)
        assert errors.is_command() is expected


# ---------------------------------------------------------------- tile


@pytest.mark.quick
@pytest.mark.parametrize(
    "options, repeats",
    [
        (["--repeats", "2,3"], (2, 3)),
        (["--repeats", "2", "--memory", "100M", "--threads", "2"], (1, 2)),
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


@pytest.mark.quick
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
        (
            ["--repeats", "3", "--axis", "2"],
            "tile: axis 2 is out of bounds for array of dimension 2",
        ),
        (["--repeats", "3", "--axis", "-3"], "tile: axis -3 is out of bounds for array of dimensi"),
        (["--repeats", "3,2", "--axis", "1,-1"], "tile: repeated axis"),
        (["--repeats", "3", "--axis", "0,1"], "tile: --repeats must have one entry for each of th"),
        (["--repeats", "3", "--axis", "x"], "argument --axis: expected integers such as 2,3, got"),
        (["--repeats", "3", "--axis", "0", "--dialect", "onnx"], "--axis is for --dialect numpy,"),
        (["--repeats", "1,2", "--dialect", "numpi"], "argument --dialect: invalid choice"),
        (["--repeats", "2", "--dialect", "onnx"], "ONNX Tile-13: --repeats has length 1"),
        (["--repeats=1,-1", "--dialect", "onnx", "--opset", "7"], "ONNX Tile-6: --repeats must n"),
        (["--repeats", "2,1", "--dialect", "onnx", "--opset", "5"], "ONNX Tile: opset 5 means Til"),
        (["--repeats", "2,1", "--dialect", "onnx", "--opset", "0"], "ONNX Tile: opset 0, expected"),
        (["--repeats", "2,1", "--opset", "13"], "--opset is for --dialect onnx, not numpy"),
        (["--repeats", "2,1", "--feature-level", "4_1"], "--feature-level is for --dialect dir"),
        (["--repeats", "2,1", "--dialect", "directml", "--feature-level", "9"], "DirectML Tile: f"),
        (["--repeats", "2,0", "--dialect", "directml"], "DirectML Tile, feature level 4_1: --re"),
        (["--repeats", "2,1", "--memory", "much"], "argument --memory: expected a number of bytes"),
        (
            ["--repeats", "2,1", "--memory", "1M"],
            "argument --memory: expected 68M or more, got '1M'",
        ),
        (
            ["--repeats", "2,1", "--threads", "0"],
            "argument --threads: expected an integer of at least 1",
        ),
        (["--repeats", "2,0", "--threads", "x"], "argument --threads: expected an integer of at l"),
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
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 128 + number
    assert signal.signal(number, before) is signal.SIG_DFL
    assert capsys.readouterr() == ("", "")
    assert os.listdir(source.parent) == ["in.npy"]


@pytest.mark.whole_process
@pytest.mark.quick
@pytest.mark.parametrize("second", ["SIGINT", "SIGTERM"])
def test_a_second_signal_does_not_cut_short_what_the_first_began(second):
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    cleaned = False
    with pytest.raises(SystemExit) as end, cli.ended_by_signals():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(getattr(signal, second))
            cleaned = True
    assert cleaned and end.value.code == 128 + signal.SIGTERM
    signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(os.name != "posix", reason="sh closes them")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_without_the_standard_streams(closed, source, oracle):
    """As a daemon starts its programs."""
    line = f'"$0" -m tilecore tile in.npy out.npy --repeats 2 {closed}'
    folder = source.parent
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    want = oracle(np.load(source), 2)
    np.testing.assert_array_equal(np.load(folder / "out.npy"), want, strict=True)


@pytest.mark.skipif(os.name != "posix", reason="sh closes it")
def test_an_error_that_nobody_listens_to_is_no_output(source):
    line = '"$0" -m tilecore tile absent.npy - --repeats 2 2>&-'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], cwd=source.parent, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.quick
def test_an_error_half_way_leaves_what_was_there(source, monkeypatch, capsys):
    target = source.with_name("out.npy")
    target.write_bytes(b"as it was")

    def fail():
        assert len(os.listdir(source.parent)) == 3
        raise OSError(errno.ENOSPC, "No space left on device")

    stopped(monkeypatch, fail)
    assert cli.main(["tile", str(source), str(target), *MEGABYTES]) == 2
    assert capsys.readouterr().err == "tilecore: No space left on device\n"
    assert sorted(os.listdir(source.parent)) == ["in.npy", "out.npy"]
    assert target.read_bytes() == b"as it was"


@pytest.mark.quick
def test_a_write_protected_file_needs_force(source, capsys, oracle):
    target = source.with_name("out.npy")
    target.write_bytes(b"as it was")
    target.chmod(0o444)
    arguments = ["tile", str(source), str(target), "--repeats", "2"]
    assert cli.main(arguments) == 2
    want = f"tilecore: {target}: write-protected; --force replaces it all the same\n"
    assert capsys.readouterr().err == want
    assert target.read_bytes() == b"as it was"
    if os.name == "posix":  # Windows replaces no such file
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
    def test_on_a_terminal(self, source):
        pytest.importorskip("tqdm")
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        pytest.importorskip("termios").tcsetwinsize(theirs, (24, 80))
        arguments = ["tile", source, source.with_name("out.npy"), *MEGABYTES]
        process = start(*arguments, cwd=source.parent, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while more := os.read(ours, 10_000):
                shown += more
        except OSError:  # Linux' way to tell that nobody writes any more
            pass
        os.close(ours)
        assert process.wait(60) == 0
        assert b"100%" in shown and b"24.0M/24.0M" in shown

    @pytest.mark.quick
    def test_none_where_there_is_no_terminal_or_no_tqdm(self, source, monkeypatch, capsys):
        arguments = ["tile", str(source), str(source.with_name("out.npy")), "--repeats", "2,2"]
        assert cli.main(arguments) == 0
        monkeypatch.setitem(sys.modules, "tqdm", None)
        assert cli.main(arguments) == 0
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

    def test_what_comes_behind_other_bytes(self, source):
        folder = source.parent
        self.tiled(folder, "in.npy", "out.npy")
        (folder / "log").write_bytes(b"12345" + source.read_bytes())
        with open(folder / "log", "rb", buffering=0) as file:
            file.read(5)
            assert self.tiled(folder, "-", "-", stdin=file) == (folder / "out.npy").read_bytes()

    def test_what_is_no_npy_file(self, tmp_path):
        command = [sys.executable, "-m", "tilecore", "tile", "-", "-", *self.REPEATS]
        done = subprocess.run(
            command, cwd=tmp_path, input=b"PK\3\4", capture_output=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr == (
            b"tilecore: standard input: a .npz archive, expected a .npy file: "
            b"numpy.load reads its arrays\n"
        )

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
@pytest.mark.parametrize(
    "arguments", ["tile in.npy - --repeats 2", "info", "--version", "--help", "tile --help"]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_standard_output(arguments, unbuffered, source, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "wb") as full:
        process = start(*arguments.split(), cwd=source.parent, stdout=full, stderr=subprocess.PIPE)
        assert process.communicate(timeout=120)[1] == "tilecore: No space left on device\n"
    assert process.returncode == 2


@pytest.mark.quick
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
