"""The oracle and the fixtures that several test files share, and the tiers of tests."""

import gc
import os
import signal
import subprocess
import sys
import sysconfig
import tracemalloc
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.testing
import pytest
from hypothesis import HealthCheck, settings

# `python -m pytest` in a clone puts its uncompiled sources in front of the installed package.
sys.path.sort(key=[str(Path(__file__).parent.parent)].count)

import tilecore

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # ONNX Runtime's telemetry opens a database in the home folder, at any moment
sys.modules["openvino_telemetry"] = None  # OpenVINO's writes there too, and is optional

# How long an example takes depends only on the machine and on sanitizers.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def tile_by_index(x, reps):
    """Tile by its one rule, ``out[i] = x[i mod x.shape]``, in index arithmetic alone."""
    reps = tuple(reps) if np.iterable(reps) else (reps,)
    x = np.asarray(x)
    rank = max(x.ndim, len(reps))
    x = x.reshape((1,) * (rank - x.ndim) + x.shape)
    reps = (1,) * (rank - len(reps)) + reps
    # An empty axis has no index to take modulo: `arange(0) % 1`.
    index = [np.arange(n * r) % max(n, 1) for n, r in zip(x.shape, reps, strict=True)]
    return x[np.ix_(*index)] if rank else x.copy()


@pytest.fixture(scope="session")
def oracle():
    return tile_by_index


def run_command(*command, cwd=None, env=None):
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run():
    """Run a command that must succeed, and return what it printed."""
    return run_command


@pytest.fixture(scope="session")
def compile_c():
    """Compile C11, or another standard of C or C++, by the compiler that made Python. A warning is an error."""

    def run_compiler(*arguments, standard="c11", compiler=None):
        command = [compiler] if compiler else os.environ.get("CC", sysconfig.get_config_var("CC") or "cc").split()
        command += ["-x", "c++" if "++" in standard else "c", f"-std={standard}"]
        run_command(*command, "-Wall", "-Wextra", "-Wpedantic", "-Werror", *arguments)

    return run_compiler


PRELUDE = Path(__file__).with_name("prelude.py").read_text(encoding="utf-8")


@pytest.fixture
def program(tmp_path, request):
    """Run Python code in a process of its own, after the START of the file; return what it printed. A warning fails."""

    def run_program(code, *options, **env):
        path = tmp_path / "program.py"
        path.write_text(PRELUDE + getattr(request.module, "START", "") + code)
        serial = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # other libraries start no threads
        given = {name for name in os.environ if name == "TILECORE_ISA" or not name.startswith("TILECORE_")}
        env = {name: os.environ[name] for name in given} | serial | env
        command = [sys.executable, "-W", "error", *options, path]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 and not done.stderr, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run_program


@pytest.fixture
def usual_signals():
    """SIGINT, SIGTERM and SIGHUP, with their usual handlers: shells make programs in the background ignore them."""
    usual = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
    usual = {getattr(signal, name): handler for name, handler in usual.items() if hasattr(signal, name)}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield usual
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def raised_between():
    """Call a function again and again, and each time raise an error before another instruction of its own code, as a
    signal handler might. Yield whether the error came out."""

    def run(call, is_own, error, place=None):
        seen, came = {}, False

        def trace(frame, event, argument):
            if not is_own(frame.f_code):
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_lineno:  # else Python ends a generator, and handles no signal
                here = frame.f_code, frame.f_lasti
                seen[here] = None
                if here == place:
                    raise error("a handler's")
            return trace

        before = sys.gettrace()
        gc.disable()  # an exception in a callback of the collector would be lost
        sys.settrace(trace)
        try:
            call()
        except Exception as caught:
            came = type(caught) is error and str(caught).strip("'\"") == "a handler's"
            if place and not came:
                raise
        finally:
            sys.settrace(before)
            gc.enable()
        return seen, came

    def runs(call, is_own=lambda code: True, error=RuntimeError):
        run(call, is_own, error)  # Python 3.12.1 does not trace all code that it runs for the first time
        for place in run(call, is_own, error)[0]:
            seen, came = run(call, is_own, error, place)
            if place in seen:  # it may have taken another way this time
                yield came

    return runs


@pytest.fixture
def settings_stay():
    """After the test, the settings of the process are those from before it."""
    max_bytes, recycle_limit = tilecore.get_max_bytes(), tilecore.get_recycle_limit()
    yield
    tilecore.set_max_bytes(max_bytes)
    tilecore.set_recycle_limit(recycle_limit)
    tilecore.set_num_threads(None)


@pytest.fixture
def traced():
    """Python's memory is traced during the test. `clear_traces()` sets what is used, and its peak, to 0."""
    tracemalloc.start()
    yield tracemalloc
    tracemalloc.stop()


class Asked(tilecore.num_threads):
    """Runs code whenever a call asks how many threads may write its result."""

    def __init__(self, code):
        self.code = code

    @property
    def _count(self):
        self.code()
        return 1


@pytest.fixture
def while_threads_are_asked():
    with ExitStack() as stack:
        yield lambda code: stack.enter_context(Asked(code))


@pytest.fixture(scope="session")
def calls_of():
    """Each way to tile an array of one axis, by name: calls that may take `out`, of one axis too."""

    def calls(x, n, plan=None):
        plan, end = plan or tilecore.TilePlan(len(x), n, x.dtype), n * len(x)
        return {
            "tile": lambda *out: tilecore.tile(x, n, *out),
            "tile_region": lambda *out: tilecore.tile_region(x, n + 1, (0,), (end,), *out),
            "tile_region of the periodic extension": lambda *out: tilecore.tile_region(x, None, (0,), (end,), *out),
            "TilePlan.tile": lambda *out: plan.tile(x, *out),
            "TilePlan.region": lambda *out: plan.region(x, (0,), (end,), *out),
            "TilePlan.batch of a list": lambda *out: plan.batch([x], *(each[None] for each in out))[0],
            "TilePlan.batch of a stack": lambda *out: plan.batch(x[None], *(each[None] for each in out))[0],
        }

    return calls


class Built(NamedTuple):
    tree: Path  # a copy of the source tree
    sdist: Path
    wheel: Path
    unpacked: Path  # the sdist, in which the wheel was built


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """What tests/build.py made: once, for all who need the package anew."""
    folder = tmp_path_factory.mktemp("built")
    run_command(sys.executable, Path(__file__).with_name("build.py"), folder)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Built(folder / "tree", sdist, wheel, folder / "unpacked")


@pytest.fixture(scope="session")
def tools(built):
    """The interpreter of an environment that has `build` and what pyproject.toml says a build needs."""
    return built.tree.with_name("tools") / ("Scripts" if sys.platform == "win32" else "bin") / "python"


@pytest.fixture
def source(tmp_path):
    """A .npy file of shape (2, 3), alone in its folder."""
    np.save(tmp_path / "in.npy", np.arange(6, dtype="f4").reshape(2, 3))
    return tmp_path / "in.npy"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads its options
def pytest_cmdline_main(config):
    """Run the files of a folder in several processes if pytest-xdist is installed; with `-n 0`, in one."""
    option, worker = config.option, hasattr(config, "workerinput")
    if not worker and getattr(option, "numprocesses", 0) is None and all(Path(arg).is_dir() for arg in config.args):
        option.numprocesses, option.maxprocesses, option.dist = "logical", 4, "loadfile"


def pytest_collection_finish():
    """What was imported stays, so the hundreds of collections of garbage need not look at it."""
    gc.collect()
    gc.freeze()


TIERS = ("quick", "process", "compiler", "package")
ALONE = {"monkeypatch", "capsys", "tmp_path", "settings_stay", "traced"}  # all threads of a test would share these
NEEDED = {"program": "process", "run": "process", "compile_c": "compiler", "built": "package"}  # the tiers of fixtures


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Put each test in a tier: by its own mark, else its class's, else its file's; or in a later one of a fixture."""
    tiers = {}
    for item in items:
        marks = [mark.name for mark in item.iter_markers() if mark.name in TIERS]  # the closest one first
        if not marks:
            raise pytest.UsageError(f"{item.nodeid}: expected a mark of a tier: {', '.join(TIERS)}")
        tiers[item] = max(marks[:1] + [NEEDED[name] for name in item.fixturenames if name in NEEDED], key=TIERS.index)
    for item, tier in tiers.items():
        for node in item.listchain():
            node.own_markers = [mark for mark in node.own_markers if mark.name not in TIERS]
        item.add_marker(tier)
        if ALONE.intersection(item.fixturenames):
            item.add_marker("whole_process")
    items.sort(key=lambda item: TIERS.index(tiers[item]))
