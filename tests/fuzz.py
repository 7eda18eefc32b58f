"""Fuzzer of tile, plans and regions: bytes become a request, whose answer is compared byte for byte.

    python tests/fuzz.py [executions] [seed]       random requests; works everywhere, deterministic
    .ci/fuzz -max_total_time=60                    guided by the compiled modules' coverage, by atheris and
                                                   clang, under AddressSanitizer

The oracle is index arithmetic. Round `out` lie canaries, and every request is written there as well as
to a new array. What it finds becomes a case in tests/test_fuzz.py.
"""

import random
import sys

import numpy as np

import tilecore

SIZES = [0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129, 300]
ITEMS = [1, 1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 48, 100]
MOST = 1 << 17  # bytes of a result: several blocks, and the GIL released
GUARD = 64
LENGTH = 36  # bytes that the longest request draws
NOISE = np.random.default_rng(0).integers(0, 256, MOST + 64, np.uint8)


class Bytes:
    """Draws small numbers from bytes; 0 when they have run out."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def below(self, n):
        self.at += 1
        return self.data[self.at - 1] % n if self.at <= len(self.data) else 0


def request(draw):
    """An input of any layout, and repeats whose result is not larger than MOST."""
    item = ITEMS[draw.below(len(ITEMS))]
    shape, reps, left = [], [], (MOST >> draw.below(12)) // item  # small ones are quicker
    for _ in range(draw.below(5)):
        n, r = SIZES[draw.below(len(SIZES))], SIZES[draw.below(len(SIZES))]
        n = min(n, left)
        r = min(r, left // max(n, 1))
        left //= max(n, 1) * max(r, 1)
        shape.append(n)
        reps.append(r)
    start = draw.below(64)  # so that items lie unaligned
    a = np.ndarray(shape, f"V{item}", NOISE.data, start)
    layout = draw.below(8)
    if layout == 1:
        a = np.asfortranarray(a)
    elif layout == 2:
        a = np.flip(a)
    elif layout == 3:
        a = a.transpose()
    elif layout == 4:
        a = a[tuple(slice(draw.below(3), None, 1 + draw.below(3)) for _ in shape)]
    elif layout == 5 and shape:
        a = np.broadcast_to(a[:1], (shape[0], *shape[1:]))
    if draw.below(4) == 0:  # repeats for more or fewer axes
        reps = [1 + draw.below(2), *reps] if draw.below(2) else reps[1:]
    return a, tuple(reps)


def oracle(a, reps):
    rank = max(a.ndim, len(reps))
    a = a.reshape((1,) * (rank - a.ndim) + a.shape)
    reps = (1,) * (rank - len(reps)) + reps
    index = [np.arange(n * r) % max(n, 1) for n, r in zip(a.shape, reps, strict=True)]
    return a[np.ix_(*index)] if rank else a.copy()


def guarded(shape, dtype, at):
    """A place for a result with canaries round it, `at` bytes off an aligned address."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.full(size + 2 * GUARD, 0xA5, np.uint8)
    return memory, np.ndarray(shape, dtype, memory.data, GUARD - at)


def check_guards(memory, out, at):
    end = GUARD - at + out.nbytes
    assert (memory[: GUARD - at] == 0xA5).all() and (memory[end:] == 0xA5).all(), "wrote round out"


def one(data):
    draw = Bytes(data)
    a, reps = request(draw)
    want = oracle(a, reps)
    if want.nbytes > 4 * MOST:
        return
    kind = draw.below(4)
    threads = 1 + draw.below(3)
    at = draw.below(GUARD)
    shape = tilecore.output_shape(a.shape, reps)
    assert shape == want.shape
    if kind >= 2:  # a region
        start = tuple(draw.below(256) * n // 255 for n in shape)
        stop = tuple(s + draw.below(256) * (n - s) // 255 for s, n in zip(start, shape, strict=True))
        want = want[tuple(map(slice, start, stop))]
        bounds = (start, stop)
    memory, out = guarded(want.shape, want.dtype, at)
    plan = tilecore.TilePlan(a.shape, reps, a.dtype)
    calls = [
        lambda **to: tilecore.tile(a, reps, **to),
        lambda **to: plan.tile(a, **to),
        lambda **to: tilecore.tile_region(a, reps, *bounds, **to),
        lambda **to: plan.region(a, *bounds, **to),
    ]
    got = calls[kind]()
    calls[kind](out=out, threads=threads)
    raw = want.tobytes()
    assert got.shape == out.shape == want.shape, (a.shape, a.strides, a.dtype, reps, kind)
    assert got.tobytes() == raw and out.tobytes() == raw, (a.shape, a.strides, a.dtype, reps, kind)
    check_guards(memory, out, at)


def run(executions, seed):
    choose = random.Random(seed)
    for number in range(executions):
        data = choose.randbytes(LENGTH)
        try:
            one(data)
        except BaseException:
            print(f"execution {number} of seed {seed}: bytes.fromhex({data.hex()!r})", file=sys.stderr)
            raise


if __name__ == "__main__":
    if sys.argv[1:2] == ["--coverage"]:
        import atheris

        atheris.Setup([sys.argv[0], f"-max_len={LENGTH}", *sys.argv[2:]], one)
        atheris.Fuzz()
    else:
        run(*[int(word) for word in [*sys.argv[1:], *["10000", "0"][len(sys.argv) - 1 :]]])
