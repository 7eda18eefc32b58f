"""The check of ways.py, guided by the coverage of the compiled modules: run it by .ci/fuzz.

The arguments are libFuzzer's. What it finds becomes an `@example`, or a test of its own.
"""

import sys

import atheris
import ways
from conftest import tile_by_index
from hypothesis import given
from hypothesis import strategies as st


@given(st.data())
def check(data):
    ways.check(tile_by_index, data.draw(st.sampled_from(ways.WAYS)), data.draw)


atheris.Setup(sys.argv, check.hypothesis.fuzz_one_input)
atheris.Fuzz()
