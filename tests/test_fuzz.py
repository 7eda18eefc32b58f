"""The fuzzer's requests: a fixed number of random ones, and those that once found something."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

SPEC = importlib.util.spec_from_file_location("fuzz", Path(__file__).parent / "fuzz.py")
fuzz = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz)


@pytest.mark.parametrize("seed", range(4))
def test_random_requests(seed):
    fuzz.run(2000, seed)


def test_it_sees_a_wrong_byte(monkeypatch):
    tile = fuzz.tilecore.tile

    def wrong(a, reps, out=None, **options):
        result = tile(a, reps, out, **options)
        result.view("u1").reshape(-1)[-1:] ^= 1
        return result

    monkeypatch.setattr(fuzz.tilecore, "tile", wrong)
    with pytest.raises(AssertionError):
        fuzz.run(100, 0)
