"""What several test files share."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent

# How long an example takes says something of the machine, and of sanitizers, and nothing else.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def oracle():
    """Tile by its one rule, ``out[i] = x[i mod x.shape]``, in index arithmetic alone."""

    def tile(x, reps):
        reps = tuple(reps) if np.iterable(reps) else (reps,)
        x = np.asarray(x)
        rank = max(x.ndim, len(reps))
        x = x.reshape((1,) * (rank - x.ndim) + x.shape)
        reps = (1,) * (rank - len(reps)) + reps
        # An empty axis has no index to take modulo: `arange(0) % 1`.
        index = [np.arange(n * r) % max(n, 1) for n, r in zip(x.shape, reps, strict=True)]
        return x[np.ix_(*index)] if rank else x.copy()

    return tile


def run_command(*command, cwd, env=None):
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def run():
    """Run a command that must succeed; what it printed."""
    return run_command


@pytest.fixture
def program(tmp_path):
    """Run Python code in a process of its own; what it printed. A warning or a hang is a failure."""

    def run_program(code, *options, **env):
        path = tmp_path / "program.py"
        path.write_text("import ctypes, os, sys, numpy, tilecore\n" + code)
        chosen = ("TILECORE_MAX_BYTES", "TILECORE_NUM_THREADS", "TILECORE_RECYCLE_BYTES")
        env = {name: value for name, value in os.environ.items() if name not in chosen} | env
        command = [sys.executable, "-W", "error", *options, path]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0 and not done.stderr, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run_program


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The sdist, and the wheel that was built from it, of a copy of the source tree."""
    tree = tmp_path_factory.mktemp("tree") / "tilecore"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "*.so")
    shutil.copytree(ROOT, tree, ignore=ignored)
    dist = tmp_path_factory.mktemp("dist")
    run_command(sys.executable, "-m", "build", "--outdir", dist, tree, cwd=dist)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    return tree, sdist, wheel
