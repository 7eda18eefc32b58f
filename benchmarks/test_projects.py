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

# A name; a setup and a call, as their examples do it; for each size n, one of the tilings that the call makes.
PROGRAMS = [
    (
        "SciPy, solution at n times",
        "from scipy.integrate import solve_ivp\n"
        "solved = solve_ivp(lambda t, y: [y[1], -y[0]], (0, 20), [1, 0], dense_output=True).sol",
        "[solved(t) for t in np.linspace(0, 20, n)]",
        {200: ((), 4, "f8"), 2000: ((), 4, "f8")},
    ),
    (
        "SciPy, events until n",
        "from scipy.integrate import solve_ivp",
        "solve_ivp(lambda t, y: [y[1], -y[0]], (0, n), [1, 0], events=lambda t, y: y[0]).t_events[0]",
        {20: ((), 4, "f8"), 200: ((), 4, "f8")},
    ),
    (
        "SciPy, permutation test of n pairs",
        "from scipy.stats import permutation_test\nx, y = random(n), random(n) ** 2\n"
        "options = {'permutation_type': 'samples', 'vectorized': True, 'rng': 0}",
        "permutation_test((x, y), lambda x, y, axis: (x - y).mean(axis), **options).null_distribution",
        {20: ((2,), (9999, 20, 1), "i8"), 200: ((2,), (9999, 200, 1), "i8")},
    ),
    (
        "linearmodels, fit of n (dates, portfolios, factors)",
        "from linearmodels.asset_pricing import LinearFactorModelGMM\nfrom pandas import DataFrame\n"
        "rng = np.random.default_rng(0)\nfactors = rng.normal(size=n[::2])\n"
        "returns = DataFrame(factors @ rng.random(n[:0:-1]) + rng.normal(size=n[:2])).add_prefix('p')\n"
        "factors = DataFrame(factors).add_prefix('f')",
        "LinearFactorModelGMM(returns, factors, risk_free=True).fit(disp=0, max_iter=3).params",
        {(700, 20, 2): ((700, 3), (1, 20), "f8"), (819, 25, 3): ((819, 4), (1, 25), "f8")},
    ),
    (
        "SHAP, kernel explainer of n rows",
        "import shap\nx = random(n, 10) - 0.5\n"
        "explainer = shap.KernelExplainer(lambda rows: 1 / (1 + np.exp(-rows.sum(axis=1))), x)",
        "np.random.seed(0) or explainer.shap_values(x[:5], nsamples=200, silent=True)",
        {20: ((20, 10), (200, 1), "f8"), 100: ((100, 10), (200, 1), "f8")},
    ),
    (
        "neurokit2, entropy of n samples",
        "import neurokit2\nsignal = neurokit2.signal_simulate(n // 100, 100, frequency=5)",
        "neurokit2.entropy_kolmogorov(signal, dimension=3)[0]",
        {300: ((3,), (297, 1), "f8"), 2000: ((3,), (1997, 1), "f8")},
    ),
    (
        "pyswarms, n (particles, dimensions)",
        "import pyswarms\nbounds, options = (-5 * np.ones(n[1]), 5 * np.ones(n[1])), {'c1': 0.5, 'c2': 0.3, 'w': 0.9}",
        "np.random.seed(0) or pyswarms.single.GlobalBestPSO(*n, options, bounds=bounds).optimize("
        "lambda x: (x**2).sum(axis=1), 200, verbose=False)[1]",
        {(10, 2): ((2,), (10, 1), "f8"), (1000, 20): ((20,), (1000, 1), "f8")},
    ),
    (
        "pandas, melt of n rows",
        "import pandas\ntable = pandas.DataFrame(random(n, 20)).reset_index()",
        "table.melt('index')['index']",
        {1000: ((1000,), 20, "i8"), 100_000: ((100_000,), 20, "i8")},
    ),
    (
        "pandas, product of n, 3 and n keys",
        "import pandas",
        "pandas.MultiIndex.from_product([range(n), list('abc'), range(n)]).codes[1]",
        {10: ((30,), 10, "i1"), 1000: ((3000,), 1000, "i1")},
    ),
    (
        "xarray, table of 20 maps of n by n",
        "import xarray\ncoords = {'time': range(20), 'lat': range(n), 'lon': range(n)}\n"
        "maps = xarray.Dataset({'t': (list(coords), random(20, n, n))}, coords)",
        "maps.to_dataframe().t",
        {10: ((10,), 200, "i8"), 100: ((100,), 2000, "i8")},
    ),
    (
        "statsmodels, seasons of n months",
        "from statsmodels.tsa.seasonal import seasonal_decompose\nseries = random(n)",
        "seasonal_decompose(series, period=12).seasonal",
        {120: ((12,), 11, "f8"), 100_000: ((12,), 8334, "f8")},
    ),
    (
        "ASE, copper, n by n by n cells",
        "from ase.build import bulk\ncopper = bulk('Cu', cubic=True)",
        "(copper * (n, n, n)).positions",
        {3: ((4, 3), (27, 1), "f8"), 30: ((4, 3), (27_000, 1), "f8")},
    ),
    (
        "einops, n gray images to RGB",
        "from einops import repeat\nx = random(n, 64, 64).astype('f4')",
        "repeat(x, 'b h w -> b h w c', c=3)",
        {1: ((1, 64, 64, 1), (1, 1, 1, 3), "f4"), 64: ((64, 64, 64, 1), (1, 1, 1, 3), "f4")},
    ),
]


def find():
    """Each size of each program as a workload, and what makes its call."""
    for name, setup, call, sizes in PROGRAMS:
        for n, (shape, reps, dtype) in sizes.items():
            reps = reps if isinstance(reps, tuple) else (reps,)
            yield Workload(f"{name}, {n}", shape, reps, dtype), (setup, call, n)


def make(setup, call, n):
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
