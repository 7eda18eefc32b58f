"""The demonstration, whose times are printed here but not judged."""

import re

import numpy as np
import pytest

from tilecore._cli import demo
from tilecore._cli import main as cli

pytestmark = pytest.mark.quick


def test_examples_and_times(capsys):
    assert cli.main(["demo"]) == 0
    shown = capsys.readouterr().out
    for call, _ in demo.EXAMPLES.values():
        assert f">>> {call}" in shown
    assert len(re.findall(r"B: tilecore [\d.]+ \w?s, numpy.tile [\d.]+ \w?s \([\d.]+x\)$", shown, re.M)) == len(
        demo.TIMED
    )
    assert max(map(len, shown.splitlines())) <= 100


def test_a_wrong_result_is_refused():
    with pytest.raises(ValueError, match="wrong result"):
        demo.verify(np.array([1, 2, 2, 1]), np.array([1, 2]), (2,))
    with pytest.raises(ValueError, match="wrong result"):
        demo.verify(np.array([1, 2, 1, 2], "int32"), np.array([1, 2], "int64"), (2,))
