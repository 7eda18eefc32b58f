"""Whole calls of other projects, with `numpy.tile` and with it replaced, each in processes of its own.

    pip install ase einops linearmodels neurokit2 pandas pyswarms scipy shap statsmodels xarray
    pytest benchmarks/test_projects.py
    python benchmarks/test_projects.py "SciPy, solution at n times, 2000" tilecore       # one program: seconds a call

A program is skipped if its package is missing.
"""

import os
import sys
import time
import warnings
from contextlib import nullcontext
from itertools import product
from statistics import median
from unittest import mock

import numpy as np
from timing import Program
from workloads import Workload

import tilecore

CASE_SECONDS = {"program": 5}  # most of it imports
SECONDS = 0.5  # of calls, in one process

# By name: for each size n, one of the tilings that the call makes; a setup, and in the last line the call, as in their
# examples.
# fmt: off
PROGRAMS = {
    "SciPy, solution at n times": ({200: ((), 4, "f8"), 2000: ((), 4, "f8")}, """
from scipy.integrate import solve_ivp
solved = solve_ivp(lambda t, y: [y[1], -y[0]], (0, 20), [1, 0], dense_output=True).sol
[solved(t) for t in np.linspace(0, 20, n)]"""),
    "SciPy, events until n": ({20: ((), 4, "f8"), 200: ((), 4, "f8")}, """
from scipy.integrate import solve_ivp
solve_ivp(lambda t, y: [y[1], -y[0]], (0, n), [1, 0], events=lambda t, y: y[0]).t_events[0]"""),
    "SciPy, permutation test of n pairs": ({n: ((2,), (9999, n, 1), "i8") for n in (20, 200)}, """
from scipy.stats import permutation_test
x, y, options = random(n), random(n) ** 2, {"permutation_type": "samples", "vectorized": True, "rng": 0}
permutation_test((x, y), lambda x, y, axis: (x - y).mean(axis), **options).null_distribution"""),
    "linearmodels, fit of n (dates, portfolios, factors)": (
        {n: ((n[0], n[2] + 1), (1, n[1]), "f8") for n in ((700, 20, 2), (819, 25, 3))}, """
from linearmodels.asset_pricing import LinearFactorModelGMM
from pandas import DataFrame
rng = np.random.default_rng(0)
factors = rng.normal(size=n[::2])
returns = DataFrame(factors @ rng.random(n[:0:-1]) + rng.normal(size=n[:2])).add_prefix("p")
factors = DataFrame(factors).add_prefix("f")
LinearFactorModelGMM(returns, factors, risk_free=True).fit(disp=0, max_iter=3).params"""),
    "SHAP, kernel explainer of n rows": ({n: ((n, 10), (200, 1), "f8") for n in (20, 100)}, """
import shap
x = random(n, 10) - 0.5
explainer = shap.KernelExplainer(lambda rows: 1 / (1 + np.exp(-rows.sum(axis=1))), x)
np.random.seed(0) or explainer.shap_values(x[:5], nsamples=200, silent=True)"""),
    "neurokit2, entropy of n samples": ({n: ((3,), (n - 3, 1), "f8") for n in (300, 2000)}, """
import neurokit2
signal = neurokit2.signal_simulate(n // 100, 100, frequency=5)
neurokit2.entropy_kolmogorov(signal, dimension=3)[0]"""),
    "pyswarms, n (particles, dimensions)": ({n: ((n[1],), (n[0], 1), "f8") for n in ((10, 2), (1000, 20))}, """
import pyswarms
options = {"options": {"c1": 0.5, "c2": 0.3, "w": 0.9}, "bounds": (-5 * np.ones(n[1]), 5 * np.ones(n[1]))}
square, optimizer = lambda x: (x**2).sum(axis=1), pyswarms.single.GlobalBestPSO
np.random.seed(0) or optimizer(*n, **options).optimize(square, 200, verbose=False)[1]"""),
    "pandas, melt of n rows": ({n: ((n,), 20, "i8") for n in (1000, 100_000)}, """
import pandas
table = pandas.DataFrame(random(n, 20)).reset_index()
table.melt("index")["index"]"""),
    "pandas, product of n, 3 and n keys": ({n: ((3 * n,), n, "i1") for n in (10, 1000)}, """
import pandas
pandas.MultiIndex.from_product([range(n), list("abc"), range(n)]).codes[1]"""),
    "xarray, table of 20 maps of n by n": ({n: ((n,), 20 * n, "i8") for n in (10, 100)}, """
import xarray
coords = {"time": range(20), "lat": range(n), "lon": range(n)}
maps = xarray.Dataset({"t": (list(coords), random(20, n, n))}, coords)
maps.to_dataframe().t"""),
    "statsmodels, seasons of n months": ({n: ((12,), n // 12 + 1, "f8") for n in (120, 100_000)}, """
from statsmodels.tsa.seasonal import seasonal_decompose
series = random(n)
seasonal_decompose(series, period=12).seasonal"""),
    "ASE, copper, n by n by n cells": ({n: ((4, 3), (n**3, 1), "f8") for n in (3, 30)}, """
from ase.build import bulk
copper = bulk("Cu", cubic=True)
(copper * (n, n, n)).positions"""),
    "einops, n gray images to RGB": ({n: ((n, 64, 64, 1), (1, 1, 1, 3), "f4") for n in (1, 64)}, """
from einops import repeat
x = random(n, 64, 64).astype("f4")
repeat(x, "b h w -> b h w c", c=3)"""),
}
# fmt: on


def find():
    """Each size of each program as a workload, and what makes its call."""
    for name, (sizes, code) in PROGRAMS.items():
        for n, (shape, reps, dtype) in sizes.items():
            yield Workload(f"{name}, {n}", shape, reps if isinstance(reps, tuple) else (reps,), dtype), (code, n)


def make(code, n):
    setup, _, call = code.rpartition("\n")
    scope = {"n": n, "np": np, "random": lambda *shape: np.random.default_rng(0).random(shape)}
    exec(setup, scope)
    return eval(f"lambda: {call}", scope)


def choose(kind, full):
    return product([workload for workload, _ in find()], ["tilecore", "numpy"])


def verify(workload, call):
    """It makes the workload's tiling, and returns the same with tilecore."""
    with mock.patch.object(np, "tile", wraps=np.tile) as tile:
        expected = call()
    made = [(np.shape(a), tuple(np.atleast_1d(reps))) for a, reps in (asked.args for asked in tile.call_args_list)]
    assert (workload.shape, workload.reps) in made
    with tilecore.replace_numpy_tile():
        np.testing.assert_array_equal(call(), expected)


def prepare(kind, workload, case):
    with warnings.catch_warnings(action="ignore"):  # of the packages
        verify(workload, make(*dict(find())[workload]))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the process: two threads vary more than tilings take
    return Program(__file__, workload.name, case)


def test_program(record):
    """The median of the calls of a process."""


def main(name, case):
    call = next(make(*words) for workload, words in find() if workload.name == name)
    with tilecore.replace_numpy_tile() if case == "tilecore" else nullcontext():
        call()
        times = []
        while len(times) < 3 or sum(times) < SECONDS:
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
    print(median(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
