"""Sources that are packed: what is chosen for a layout, and each byte that is written, for every small shape.

The functions are called as other compiled modules call them. A failure shows what was chosen.
"""

import itertools
import math
from ctypes import byref

import numpy as np
import pytest
from declared import get_function, get_struct
from test_every_way import make_items
from test_nest import nest_of, plan_of

from tilecore._core.write import panels as module
from tilecore._core.write import processor

pytestmark = [pytest.mark.quick, pytest.mark.tree]

PACKERS, STORES = ["transpose", "deinterleave", "gather"], ["scratch", "output", "past the caches"]
PAST_CACHES = 2  # in kernels.h
choose_panels, write_panels = get_function(module, "choose_panels"), get_function(module, "write_panels")


class Panels(get_struct("Panels")):
    def place(self):
        return STORES[self.direct + (self.store_mode == PAST_CACHES)]

    def __str__(self):
        loops = self.packing.loop[1 : self.packing.n]
        loops = [f"{loop.in_panel} of {loop.count} x ({loop.src_step}, {loop.dst_step})" for loop in loops]
        return f"{PACKERS[self.packing.packer]} to {self.place()}: {', '.join(loops)}; {self.total} parts"


def choose(shape, strides, reps, itemsize, *, stream=False, src=0, dst=0):
    """What is chosen for an input of these strides and an output in C order; None: no panels."""
    panels = Panels()
    panels.kept = nest_of(plan_of(shape, reps, itemsize), strides, None)
    return panels if choose_panels(byref(panels), byref(panels.kept), dst, src, stream, True) else None


@pytest.mark.parametrize(("shape", "strides", "reps", "itemsize", "stream", "chosen"), [
    # The loops that pack: steps in a panel, of all x (bytes in the source, in the panel or the output)
    ((1024, 1024), (4, 4096), (2, 2), 4, False,
     "transpose to scratch: 128 of 1024 x (4096, 4), 128 of 1024 x (4, 512); 64 parts"),
    ((1024, 1000), (4, 4096), (1, 1), 4, False,
     "transpose to output: 512 of 1000 x (4096, 4), 128 of 1024 x (4, 4000); 16 parts"),
    ((1024, 1000), (4, 4096), (1, 1), 4, True,
     "transpose to past the caches: 512 of 1000 x (4096, 4), 512 of 1024 x (4, 4000); 4 parts"),
    ((1024, 100), (4, 4096), (1, 1), 4, True,  # rows too short for stores past the caches
     "transpose to scratch: 100 of 100 x (4096, 4), 128 of 1024 x (4, 400); 8 parts"),
    ((3, 500, 400), (1, 3, 1500), (1, 1, 1), 1, False,  # three at a time: whole pixels
     "transpose to scratch: 400 of 400 x (1500, 1), 501 of 1500 x (1, 400); 3 parts"),
    # Items at steps
    ((401, 158, 5), (3160, 10, 2), (2, 1, 3), 1, False,
     "deinterleave to scratch: 790 of 790 x (2, 1), 256 of 401 x (3160, 790); 2 parts"),
    ((500, 300), (16800, 56), (1, 1), 8, False, "deinterleave to output: 30000 of 150000 x (56, 8); 5 parts"),
    ((500, 300), (21600, 72), (1, 1), 8, False, "gather to output: 30000 of 150000 x (72, 8); 5 parts"),
    ((500, 300), (21600, 72), (2, 1), 8, False, "gather to scratch: 7896 of 150000 x (72, 8); 19 parts"),
    ((300,), (800,), (3,), 8, False, "None"),  # too few items
])  # fmt: skip
def test_what_is_chosen(shape, strides, reps, itemsize, stream, chosen):
    if "deinterleave" in chosen and processor.instruction_sets()["used"] == "scalar":
        pytest.skip("the plain C kernels gather")
    assert str(choose(shape, strides, reps, itemsize, stream=stream)) == chosen


def test_every_small_shape(oracle):
    """Of axes in every order and direction, by every packer to every place; a part at a time."""
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
                places = {"src": view.ctypes.data, "dst": got.ctypes.data}
                panels = choose(view.shape, view.strides, reps, itemsize, stream=stream, **places)
                if panels is None:
                    continue
                for number in range(panels.total):
                    write_panels(byref(panels), number, number + 1)
                assert got.tobytes() == want.tobytes(), f"{shown}: {panels}"
                seen.add((PACKERS[panels.packing.packer], panels.place()))
    assert {("gather", "scratch"), ("gather", "output"), *itertools.product(["transpose"], STORES)} <= seen
