"""Lazy tilings: tilecore's and dask.array.tile's, from the call to the result, by Dask's threads."""

import numpy as np
import pytest
from workloads import verify

da = pytest.importorskip("dask.array")
import dask  # noqa: E402

from tilecore.integrations.dask import tile  # noqa: E402

CASES = {
    "tilecore": tile,
    "tilecore in chunks of 1000": lambda x, reps: tile(x, reps, chunks=1000),
    "dask": lambda x, reps: da.tile(da.from_array(x, chunks=-1), reps),
}
REQUESTS = {"pattern": ((64, 64), (100, 100)), "image": ((512, 512), (12, 12))}
ENDS = {"built": lambda y: y, "summed": lambda y: y.sum().compute(), "whole": lambda y: y.compute()}

pytestmark = pytest.mark.benchmark(max_time=0.5, min_rounds=3)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("case", CASES)
def test_dask(benchmark, request_name, end, case):
    shape, reps = REQUESTS[request_name]
    x = np.resize(np.arange(251, dtype="f4"), shape)
    result = CASES[case](x, reps)
    verify(result.compute(), x, reps)
    benchmark.group = f"{request_name} {shape} by {reps}, {end}"
    benchmark.extra_info["tasks"] = len(dict(dask.optimize(result)[0].__dask_graph__()))
    benchmark(lambda: ENDS[end](CASES[case](x, reps)))
