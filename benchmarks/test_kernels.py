"""The kernels alone: bytes per cycle, and what each brings over the next simpler one."""

import shutil

import kernels
import machine
import pytest


@pytest.mark.skipif(not shutil.which(machine.COMPILER), reason="no C compiler")
def test_kernels(benchmark, pytestconfig, capsys):
    """Its own time means nothing: the tables are printed, the numbers are in `extra_info`.

    The program checks what every kernel wrote before it is timed.
    """
    benchmark.group = "kernels (the time to measure them all)"
    wanted = kernels.points(pytestconfig.getoption("full"))
    every = list(dict.fromkeys(p for its_points in wanted.values() for p in its_points))
    found = benchmark.pedantic(kernels.run, [every], rounds=1)
    with capsys.disabled():
        print(f"\n{kernels.report(wanted, found)}")
    benchmark.extra_info["kernels"] = [
        {
            **point._asdict(),
            "set": isa,
            "kernel": kernel,
            "bytes per cycle": timing.bytes_per_cycle,
            "bytes per ns": timing.bytes_per_ns,
        }
        for point, timings in found.items()
        for (isa, kernel), timing in timings.items()
    ]
