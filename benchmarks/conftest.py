"""`pytest benchmarks` runs a short selection, `pytest benchmarks --full` everything.

Call `pytest`, not `python -m pytest`: the latter would import the uncompiled checkout. A report of
moderate width: --benchmark-columns=min,median,iqr,rounds --benchmark-sort=name
"""

import sys
from pathlib import Path

# pytest's importlib mode puts nothing on the path; the benchmarks share a few plain modules.
sys.path.insert(0, str(Path(__file__).parent))

import machine
import pytest

ELSEWHERE = pytest.StashKey[machine.Elsewhere]()


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="benchmarks: every case, and the grid")


def pytest_configure(config):
    config.stash[ELSEWHERE] = machine.Elsewhere()


def pytest_report_header():
    return [f"{what}: {said}" for what, said in machine.describe().items()]


def pytest_benchmark_update_machine_info(config, machine_info):
    machine_info.update(machine.describe())
    if share := config.stash[ELSEWHERE].share():
        machine_info[machine.Elsewhere.NAME] = share
