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


def choose(shape, strides, reps, itemsize, *, stream=False, src=0, dst=0):
    """What is chosen for an input of these strides and an output in C order; None: no panels."""
    panels, stores = Panels(), PAST_CACHES if stream else ORDINARY
    panels.kept = nest = nest_of(plan_of(shape, reps, itemsize), strides, None)
    return panels if may_pack(byref(nest)) and choose_panels(byref(panels), byref(nest), dst, src, stores) else None


@pytest.mark.parametrize(("shape", "strides", "reps", "itemsize", "stream", "chosen"), [
    # The steps of each loop in a panel, of all x (bytes in the source, in the output)
    ((1000, 1000), (4, 4000), (2, 2), 4, False,
     "scratch: 1000 of 1000 x (4000, 4), 2 of 2 x (0, 4000), 64 of 1000 x (4, 8000), 2 of 2 x (0, 8000000); 16 panels"),
    ((1024, 1024), (4, 4096), (2, 2), 4, False,  # rows that alias in the cache
     "scratch: 128 of 1024 x (4096, 4), 2 of 2 x (0, 4096), 128 of 1024 x (4, 8192), 2 of 2 x (0, 8388608); 64 panels"),
    ((9999, 9999), (4, 39996), (1, 2), 4, False,  # rows too long to be whole
     "scratch: 128 of 9999 x (39996, 4), 2 of 2 x (0, 39996), 128 of 9999 x (4, 79992); 6241 panels"),
    ((1024, 1000), (4, 4096), (1, 1), 4, False,
     "transpose to output: 512 of 1000 x (4096, 4), 128 of 1024 x (4, 4000); 16 panels"),
    ((1024, 1000), (4, 4096), (1, 1), 4, True,
     "transpose to past the caches: 512 of 1000 x (4096, 4), 512 of 1024 x (4, 4000); 4 panels"),
    ((1024, 100), (4, 4096), (1, 1), 4, True,  # rows too short for stores past the caches
     "scratch: 100 of 100 x (4096, 4), 160 of 1024 x (4, 400); 7 panels"),
    ((3, 500, 400), (1, 3, 1500), (1, 1, 1), 1, False,  # all of a pixel
     "gather to output: 400 of 400 x (1500, 1), 192 of 500 x (3, 400), 3 of 3 x (1, 200000); 3 panels"),
    # Items at steps
    ((401, 158, 5), (3160, 10, 2), (2, 1, 3), 1, False,
     "scratch: 5 of 5 x (2, 1), 3 of 3 x (0, 5), 158 of 158 x (10, 15), 256 of 401 x (3160, 2370), "
     "2 of 2 x (0, 950370); 2 panels"),
    ((500, 300), (16800, 56), (1, 1), 8, False, "deinterleave to output: 30000 of 150000 x (56, 8); 5 panels"),
    ((500, 300), (21600, 72), (1, 1), 8, False, "gather to output: 30000 of 150000 x (72, 8); 5 panels"),
    ((500, 300), (21600, 72), (2, 1), 8, False, "scratch: 7896 of 150000 x (72, 8), 2 of 2 x (0, 1200000); 19 panels"),
    # From 4096 items on, or 128 rows: a loop of repeats around all rows counts once; from 512 items on without repeats
    ((1024,), (800,), (4,), 8, False, "scratch: 1024 of 1024 x (800, 8), 4 of 4 x (0, 8192); 1 panels"),
    ((1365,), (800,), (3,), 8, False, "None"),
    ((64, 2), (8, 800), (3, 2), 1, False,
     "scratch: 2 of 2 x (800, 1), 2 of 2 x (0, 2), 64 of 64 x (8, 4), 3 of 3 x (0, 256); 1 panels"),
    ((63, 2), (8, 800), (3, 2), 1, False, "None"),
    ((512,), (800,), (1,), 8, False, "gather to output: 512 of 512 x (800, 8); 1 panels"),
    ((511,), (800,), (1,), 8, False, "None"),
])  # fmt: skip
def test_what_is_chosen(shape, strides, reps, itemsize, stream, chosen):
    if "deinterleave" in chosen and processor.instruction_sets()["used"] == "scalar":
        pytest.skip("the plain C kernels gather")
    assert str(choose(shape, strides, reps, itemsize, stream=stream)) == chosen


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
                places = {"src": view.ctypes.data, "dst": got.ctypes.data}
                panels = choose(view.shape, view.strides, reps, itemsize, stream=stream, **places)
                if panels is None:
                    continue
                for number in range(panels.total):
                    write_panels(byref(panels), number, number + 1)
                assert got.tobytes() == want.tobytes(), f"{shown}: {panels}"
                seen.add(panels.place())
    assert seen == {*STORES}
