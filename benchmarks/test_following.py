"""What follows a tiling: done with the result of each function, and as docs/what-follows.md advises.

"broadcast" is NumPy's operation on the input itself, "made once" the operation alone, with an earlier result.
"""

from functools import partial
from itertools import product
from math import gcd

import numpy as np
from timing import Call
from workloads import Workload, verify

from tilecore import TilePlan, output_shape, tile, tile_mapped, tile_region, tile_view

CASE_SECONDS = {"following": 0.15}
TILE = {"tilecore": tile, "numpy": np.tile, "broadcast": lambda x, reps: x, "tile_view": tile_view, "made once": None}
MASK = [((h, w, 1), (1, 1, n)) for h, w, n in ((480, 640, 3), (200, 320, 2), (1080, 1920, 3), (2160, 3840, 3))]
FEW_PIXELS = [((n, n, 1), (1, 1, 3)) for n in (4, 28, 70)]
LENGTHS = product((250, 25_000, 600_000, 2_500_000), (1, 2, 3, 4, 8, 16, 64, 128, 256, 1024))
LENGTHS = [it for n, k in LENGTHS for it in (((n // k + 1, 1), (1, k)), ((1, k), (n // k + 1, 1))) if k > 1]
OPERATIONS = ("times a mask", "where", "minus a constant", "times", "read")
ASSIGNED = ("gray to RGBA", "channel")  # "broadcast" is plain assignment
ROWS = [((1, n), (n, 1)) for n in (16, 160, 1000, 1600, 4000)]


def like(x, reps):
    return np.ones(output_shape(x.shape, reps), x.dtype if x.dtype != bool else "u1")


def by_numexpr(x, reps, own):
    import numexpr

    return numexpr.evaluate("own * x", out=np.empty_like(own), casting="unsafe")  # for u1 it computes in int32


def subtract_row(x, reps, image):
    row = tile(x.ravel(), gcd(image.size // x.size, 640))
    return (image.reshape(-1, row.size) - row).reshape(image.shape)


def concatenate(x, reps, points):
    both = np.empty((reps[0], x.size + 64), x.dtype)
    tile(x, reps, out=both[:, : x.size])
    both[:, x.size :] = points
    return both


def lengthen(x, reps, clips):
    out = np.empty((len(clips), 160_000), x.dtype)
    for row, clip in zip(out, clips, strict=True):
        tile_region(clip, None, 0, 160_000, out=row)
    return out


def change(tile, x, reps, own):
    (y := tile(x, reps))[-1] = 1
    return y


# fmt: off
# dtypes, inputs and repeats, what is done with `own` and the result of a `tile`, what is advised, and `own`
STEPS = {
    "times a mask": (("u1", "f4"), MASK, lambda t, x, reps, own: own * t(x, reps), None, like),
    "where": ("?", MASK, lambda t, x, reps, own: np.where(t(x, reps), own, 0), None, like),
    "minus a constant": (["f4"], [((1, 3), (200_000, 1)), ((1, 1, 3), (480, 640, 1))],
        lambda t, x, reps, own: own - t(x, reps), subtract_row, like),
    "times": (("f4", "u1", "f8"), LENGTHS, lambda t, x, reps, own: own * t(x, reps), None, like),
    "read": (["f4"], ROWS + [(shape[::-1], reps[::-1]) for shape, reps in ROWS],
        lambda t, x, reps, own: t(x, reps).max(), lambda x, reps, own: tile_mapped(x, reps).max(), like),
    "change": (["f4"], ROWS, change, partial(change, tile_mapped), like),
    "transpose": (["f4"], ROWS, lambda t, x, reps, own: np.ascontiguousarray(t(x, reps).T),
        lambda x, reps, own: tile(x.T, reps[::-1]), like),
    "gray to RGBA": (["u1"], [((h, w, 1), (1, 1, 3)) for h, w in ((480, 640), (8, 8), (160, 200), (1500, 2000))],
        lambda t, x, reps, own: own.__setitem__(..., t(x, reps)) or own, lambda x, reps, own: tile(x, reps, out=own),
        lambda x, reps: np.ones((*x.shape[:2], 4), x.dtype)[..., :3]),
    "channel": (("f8", "f4", "i2", "u1"),
        [form for h, w in ((1000, 960), (10, 96), (100, 96)) for form in (((1, w), (h, 1)), ((h, 1), (1, w)))],
        lambda t, x, reps, own: own.__setitem__(..., t(x, reps)) or own, lambda x, reps, own: tile(x, reps, out=own),
        lambda x, reps: np.ones((*output_shape(x.shape, reps), 3), x.dtype)[..., 0]),
    "concatenate": (["f4"], [((1, 256), (n, 1)) for n in (4, 80, 8192)],
        lambda t, x, reps, own: np.concatenate([t(x, reps), own], axis=1), concatenate,
        lambda x, reps: np.ones((reps[0], 64), x.dtype)),
    "audio": (["f4"], [((16_000,), (11,))],
        lambda t, x, reps, own: np.stack([t(clip, 160_000 // clip.size + 1)[:160_000] for clip in own]), lengthen,
        lambda x, reps: [np.random.default_rng(k).random(16_000 * (1 + k % 4), dtype="f4") for k in range(32)]),
    "stack": (["u1"], [*FEW_PIXELS, ((224, 224, 1), (1, 1, 3))],
        lambda t, x, reps, own: np.stack([t(image, reps) for image in own]),
        lambda x, reps, own: TilePlan(x.shape, reps, x.dtype).batch(own),
        lambda x, reps: [x.copy() for _ in range(64)]),
    "again": (["u1"], FEW_PIXELS, lambda t, x, reps, own: t(x, reps), lambda x, reps, own: own[0].tile(x, own[1]),
        lambda x, reps: (TilePlan(x.shape, reps, x.dtype), like(x, reps))),
    "repeat": (["f4"], [((1, n, 1), (100, 1, 4)) for n in (3, 60, 6000)],
        lambda t, x, reps, own: t(np.repeat(x.ravel(), 4), 100), lambda x, reps, own: tile(x, reps).ravel(), like),
    "cut": (["u1"],
        [((n, n, 3), (4, 4, 1)) for n in (4, 40, 400)] + [((n, 1), (4, 1)) for n in (30, 30_000, 3_000_000)],
        lambda t, x, reps, own: 2 * t(x, reps)[: own[0], : own[1]],
        lambda x, reps, own: 2 * tile_region(x, None, (0,) * x.ndim, own),
        lambda x, reps: [n * r - n // 3 * (r > 1) for n, r in zip(x.shape, reps, strict=True)]),
}
# fmt: on


def choose(kind, full):
    for step, (dtypes, forms, _, advised, _) in STEPS.items():
        cases = [*TILE][: 5 if step in OPERATIONS else 3 if step in ASSIGNED else 2]
        cases += ["advised"] * (advised is not None) + ["numexpr"] * (step == "times a mask")
        for dtype, (shape, reps) in product(dtypes, forms if full else forms[:1]):
            yield from product([Workload(f"{step}, {shape} × {reps} {dtype}", shape, reps, dtype)], cases)


def prepare(kind, workload, case):
    x, reps = workload.input(), workload.reps
    *_, run, advised, make = STEPS[workload.name.partition(",")[0]]
    verify(made := np.tile(x, reps), x, reps)
    expected, own = np.array(run(np.tile, x, reps, make(x, reps))), make(x, reps)
    call = partial(run, TILE[case] or (lambda x, reps: made)) if case in TILE else advised or by_numexpr
    np.testing.assert_array_equal(call(x, reps, own), expected, strict=True)
    return Call(partial(call, x, reps, own))


def test_following(record):
    """An operation, a change, a slice, a stack, a cut."""
