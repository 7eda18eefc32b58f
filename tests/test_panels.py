"""Sources that are packed: each byte that is written, for every small shape.

The functions are called as other compiled modules call them. A failure shows what was chosen.
"""

import itertools
import math
from ctypes import byref

import numpy as np
import pytest
from declared import get_function, get_struct, nest_of, plan_of
from ways import make_items

from tilecore._core.resources import processor
from tilecore._core.write import panels as module

pytestmark = [pytest.mark.quick, pytest.mark.tree]

PACKERS, STORES = ["transpose", "deinterleave", "gather"], ["scratch", "output", "past the caches"]
ORDINARY, PAST_CACHES = 0, 2  # in stores.pxd, and the second in kernels.h too
may_pack, choose_panels, write_panels = (
    get_function(module, name) for name in ("may_pack", "choose_panels", "write_panels")
)


class Panels(get_struct("Panels")):
    def place(self):
        return STORES[self.direct and 1 + (self.store_mode == PAST_CACHES)]

    def __str__(self):
        loops = zip(self.steps[1 : self.kept.n], self.kept.loop[1:], strict=False)
        loops = [f"{steps} of {loop.count} x ({loop.src_step}, {loop.dst_step})" for steps, loop in loops]
        packer = f"{PACKERS[self.packing.packer]} to " if self.direct else ""
        return f"{packer}{self.place()}: {', '.join(loops)}; {self.total} panels"


def choose(shape, strides, reps, itemsize, stream, src, dst):
    """What is chosen for an input of these strides and an output in C order; None: no panels."""
    panels, stores = Panels(), PAST_CACHES if stream else ORDINARY
    panels.kept = nest = nest_of(plan_of(shape, reps, itemsize), strides, None)
    return panels if may_pack(byref(nest)) and choose_panels(byref(panels), byref(nest), dst, src, stores) else None


def test_every_small_shape(oracle):
    """Of axes in every order and direction, to every place; a panel at a time."""
    seen = set()
    for shape in itertools.product((2, 3, 17, 130), repeat=3):
        for itemsize, order in itertools.product((1, 4, 8, 16), itertools.permutations(range(3))):
            if not 512 <= math.prod(shape) <= 2**17 // itemsize:
                continue
            x = make_items(shape, f"V{itemsize}").transpose(order)
            views = x, x[::-1], x[..., ::-1]
            for view, reps, stream in itertools.product(views, [(1, 1, 1), (2, 1, 3)], (False, True)):
                want, shown = oracle(view, reps), f"{view.shape}, strides {view.strides}, {reps}"
                got = np.zeros_like(want, order="C")
                panels = choose(view.shape, view.strides, reps, itemsize, stream, view.ctypes.data, got.ctypes.data)
                if panels is None:
                    continue
                for number in range(panels.total):
                    write_panels(byref(panels), number, number + 1)
                assert got.tobytes() == want.tobytes(), f"{shown}: {panels}"
                seen |= {panels.place(), PACKERS[panels.packing.packer]}
    shuffles = processor.instruction_sets()["used"] != "scalar"
    assert seen == {*STORES, *PACKERS} - (set() if shuffles else {"deinterleave"})
