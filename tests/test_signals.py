"""Signals during a long call: a KeyboardInterrupt ends it, and a handler may call tilecore itself.

No clock decides anything here: `interrupt_main` leaves a signal pending, for which Python looks before its next
instruction. But C calls both it and the function after it (`operator.call`), so the first to look is tilecore. What is
not yet written at that moment is known of one thread alone: while it has no processor, a worker may write all the rest.
"""

import gc
import io
import operator
import os
import reprlib
import shutil
import signal
import sys
import threading
from _thread import interrupt_main
from functools import partial

import numpy as np
import pytest
from prelude import MIB, descriptors_now, interrupted

import tilecore
from tilecore._core.request.errors import RequestError, format_error
from tilecore._profile import measure

ROWS = 600  # of 1 MiB each: some checks for signals, one in 50 ms
PART = np.s_[::75, :: MIB // 8]  # threads begin at both ends, and what lies between is written last

pytestmark = [pytest.mark.quick, pytest.mark.whole_process, pytest.mark.usefixtures("usual_signals")]


@pytest.fixture(autouse=True)
def two_threads(settings_stay):
    """More threads might end before the first check for signals."""
    tilecore.get_num_threads()  # reads files; a signal that arrives in the meantime ends a call before it begins
    tilecore.set_num_threads(2)


@pytest.fixture(scope="module")
def out():
    return np.empty((ROWS, MIB), "u1")


INPUT = np.ones(MIB, "u1")
CALLS = {
    "tile": partial(tilecore.tile, INPUT, (ROWS, 1)),
    "tile, threads": partial(tilecore.tile, INPUT, (ROWS, 1), threads=3),
    "strided": partial(tilecore.tile, np.repeat(INPUT, 2)[::2], (ROWS, 1)),
    "one panel": partial(tilecore.tile, INPUT[: 2**8][::-1], (ROWS, 2**12)),
    "region": partial(tilecore.tile_region, INPUT, (999, 1), (9, 0), (9 + ROWS, MIB)),
    "region of several pieces": partial(  # 150, 250 and 200 MiB
        tilecore.tile_region, np.broadcast_to(INPUT, (250, MIB)), (9, 1), (100, 0), (100 + ROWS, MIB)
    ),
    "batch": partial(tilecore.TilePlan(MIB, 1, "u1").batch, [INPUT] * ROWS, threads=1),
    "batch, threads": partial(tilecore.TilePlan(MIB, 1, "u1").batch, [INPUT] * ROWS, threads=2),
    "plan": partial(tilecore.TilePlan(MIB, (ROWS, 1), "u1").tile, INPUT),
    "plan.region": partial(tilecore.TilePlan(MIB, (999, 1), "u1").region, INPUT, (9, 0), (9 + ROWS, MIB)),
}
MAPPED = {  # the block that repeats is as large
    "mapped": lambda out: partial(tilecore.tile_mapped, out, (20, 1)),
    "mapped, made in scratch": lambda out: partial(tilecore.tile_mapped, out.reshape(-1, 2, 4096)[:, ::-1], (20, 1, 1)),
}


@pytest.mark.parametrize("name", [*CALLS, *MAPPED])
def test_an_interrupt_ends_the_call_and_leaves_nothing_behind(name, out):
    call = CALLS[name] if name in CALLS else MAPPED[name](out)
    if name in CALLS:
        out[PART] = 7
        with pytest.raises(KeyboardInterrupt), tilecore.num_threads(1):
            interrupted(call, out=out)
        assert out[0, 0] == 1 and (7 in out[PART] or "threads" in name)  # begun, and not ended
    gc.collect()
    tilecore.release_memory()

    def state():
        memory = tilecore.show_config("dicts")["Memory"]
        return descriptors_now(), memory, *map(sys.getrefcount, (INPUT, out, out.dtype))

    before, results = state(), []
    with pytest.raises(KeyboardInterrupt):
        results.extend(map(operator.call, [interrupt_main, call]))
    assert results == [None]  # interrupt_main's
    tilecore.release_memory()
    assert state() == before


def test_an_interrupt_is_not_lost_in_a_small_call():
    """NumPy's function that makes a dtype of a pair would swallow it."""
    x, none = np.zeros(20), np.zeros(3, [("none", "S0"), ("n", "i4")])["none"]
    for call in (partial(tilecore.tile, x[::2], 1, x[1::2]), partial(tilecore.tile, none, 2)):
        with pytest.raises(KeyboardInterrupt):
            interrupted(call)


def test_an_interrupt_ends_a_batch_of_small_results(out):
    """None of them is so large that it checks for signals."""
    plan, small = tilecore.TilePlan(4096, 1, "u1"), out.reshape(-1, 4096)
    small[-1] = 7
    with pytest.raises(KeyboardInterrupt):
        interrupted(plan.batch, [INPUT[:4096]] * len(small), small, threads=1)
    assert small[0, 0] == 1 and small[-1, 0] == 7


@pytest.mark.parametrize("threads", [1, 2])
def test_a_handler_may_tile(threads, out):
    """The handler's call, in the midst of another: results of its own, recycled ones too."""
    seen = []

    def handler(signum, frame):
        own = tilecore.tile(np.full(MIB, 3, "u1"), (40, 1), threads=2)
        del own
        again = tilecore.tile(np.full(MIB, 5, "u1"), (40, 1))
        tilecore.release_memory()
        seen.append((7 in out[PART] or threads > 1, (again == 5).all()))

    out[PART] = 7
    signal.signal(signal.SIGINT, handler)
    assert interrupted(tilecore.tile, INPUT, (ROWS, 1), out, threads=threads) is out
    assert seen == [(True, True)]
    assert out.min() == out.max() == 1
    y = interrupted(tilecore.tile_mapped, out, (20, 1))
    assert len(seen) == 2 and (y[:: ROWS + 1, ::4096] == 1).all()


def test_handlers_within_handlers_do_not_exhaust_the_stack(out):
    """A check takes 30 KiB of it. Within 16 handlers a call ends before the next handler runs."""
    ended = []

    def handler(signum, frame):
        ended.append(bool((out[PART] == 1).all()))
        out[PART] = 7
        if len(ended) < 18:
            interrupted(tilecore.tile, INPUT, (ROWS, 1), out, threads=1)

    signal.signal(signal.SIGINT, handler)
    out[PART] = 7
    interrupted(tilecore.tile, INPUT, (ROWS, 1), out, threads=1)
    assert ended == [False] * 16 + [True] * 2


def test_a_handler_may_reshape_the_input(out):
    """NumPy then frees the strides that the call began with, and other arrays reuse that memory."""
    half, ones = MIB // 2, (1,) * 14
    row = np.arange(half // 2, dtype="u2").view("u1")
    a = np.broadcast_to(row, (ROWS, *ones, half))  # NumPy keeps the shapes of fewer axes for itself
    others = []

    def handler(signum, frame):
        a.shape = ROWS, half
        others.extend(np.empty((2, *ones, 1), "u1") for _ in range(100))

    # Columns of three pieces, of 150, 300 and 150 MiB: tilecore looks before the third.
    start, stop = (0,) * 15 + (half // 2,), (ROWS, *ones, half // 2 + MIB)
    y = out.reshape(ROWS, *ones, MIB)
    signal.signal(signal.SIGINT, handler)
    assert interrupted(tilecore.tile_region, a, 3, start, stop, y) is y
    assert len(others) == 100
    assert (out[::37] == np.tile(row, 3)[half // 2 : half // 2 + MIB]).all()


@pytest.mark.parametrize("kind", ["TimeoutError", "AttributeError", "ValueError"])
def test_what_a_handler_raises_in_the_first_large_call(kind, program):
    """The first call reads files and modules, and expects errors of some: the handler's is not one of them."""
    program(f"""
import multiprocessing
def handler(signum, frame): raise {kind}("a handler's")
signal.signal(signal.SIGINT, handler)
refuse(partial(interrupted, tilecore.tile, numpy.ones(MIB, "u1"), 40), {kind}, "a handler's")
""")


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, TypeError, BufferError])
@pytest.mark.parametrize("method", ["__array__", "__index__", "__iter__"])
def test_what_a_handler_raises_while_an_argument_is_read(method, kind):
    """It is not taken for the argument's own refusal."""

    def handler(signum, frame):
        raise kind("a handler's")

    def read(*_, **__):
        interrupt_main()
        return X if method == "__array__" else 2

    thing, X = type("Own", (), {method: read})(), np.arange(3)
    signal.signal(signal.SIGINT, handler)
    calls = [partial(tilecore.tile, *((thing, 2) if method == "__array__" else (X, thing)))]
    with tilecore.replace_numpy_tile():
        calls += [partial(np.tile, thing, 2)] * (method == "__array__")
        for call in calls:
            with pytest.raises(kind, match="^a handler's$"):
                call()


def profiled():
    with tilecore.profile():
        np.tile(SMALL, 2)


SMALL = np.arange(3)
KINDS = [ValueError, TimeoutError, TypeError, OverflowError, KeyError, BufferError]
INTERRUPTED = {
    "iterable": lambda: tilecore.tile(SMALL, range(2, 4)),
    "an error": lambda: tilecore.tile(SMALL, [2, "a"]),
    "a set": lambda: tilecore.tile(SMALL, {2, 3}),
    "an object": lambda: tilecore.tile(SMALL, 2, threads=2.5),
    "bytes": lambda: tilecore.set_max_bytes("1 X"),
    "onnx": lambda: tilecore.onnx.infer_shape(("N", 3), [2, 2]),
    "directml": lambda: tilecore.directml.tile(np.zeros(3, "f4"), [2]),
    "profile": profiled,
}


class OfBothKinds(TimeoutError, ValueError):
    """Both kinds of errors that a profile expects. A profile takes seconds, so one run tries both."""


@pytest.mark.parametrize(
    "kind, name",
    [(OfBothKinds, "profile"), *((kind, name) for name in INTERRUPTED if name != "profile" for kind in KINDS)],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of files, closed without a `with`
def test_what_a_handler_raises_at_any_moment(kind, name, raised_between):
    """It comes out between any two instructions of tilecore's Python code, and of the library code that it calls."""
    own = os.path.dirname(tilecore.__file__), reprlib.__file__, shutil.__file__

    def call():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", io.StringIO())
            patch.setattr(np, "tile", np.tile)
            # New state each time: an error at a block's very end, or where Python handles no signal, may leave some.
            for state, new in (("active", []), ("lock", threading.RLock()), ("local", threading.local())):
                patch.setattr(measure, state, new)
            INTERRUPTED[name]()

    came = [*raised_between(call, lambda code: code.co_filename.startswith(own), kind)]
    assert all(came)
    assert came or name == "iterable"  # which is read by compiled code


def test_what_a_handler_raises_while_an_error_is_made():
    """The integrations word the errors of other functions anew."""
    with pytest.raises(ValueError, match="a handler's") as caught:
        try:
            raise RequestError(ValueError, "refused")
        except RequestError:
            raise ValueError("a handler's")  # noqa: B904
    assert format_error(caught.value, "name") is caught.value


def test_signals_are_the_main_threads(out):
    """A call in another thread runs to its end, and the interrupt is raised where it belongs."""
    done = []
    thread = threading.Thread(target=lambda: done.append(tilecore.tile(INPUT, (ROWS, 1), out)))
    out[-1] = 7
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        interrupt_main()
        thread.join()
    thread.join()
    assert done and out.min() == out.max() == 1


def test_many_small_pieces_can_be_interrupted():
    """There are 2^27 pieces of a few bytes, each below every threshold."""
    a = np.zeros((2,) * 25 + (3,), "S3")[..., :0:-1]
    rank = a.ndim
    with pytest.raises(KeyboardInterrupt):
        interrupted(tilecore.tile_region, a, (2,) * rank, (1,) * rank, (3,) * rank)


@pytest.mark.skipif(sys.platform == "win32", reason="it calls the C library by name")
def test_a_daemon_thread_outlives_the_interpreter(program):
    """A thread that still writes does not ask the ended interpreter whether a signal has come."""
    program("""
libc, pointer = ctypes.CDLL(None), ctypes.c_void_p
libc.__cxa_atexit(ctypes.cast(libc.usleep, pointer), pointer(500000), None)    # so long it still writes
x, out = numpy.zeros((2**25, 2), "u1")[:, 0], numpy.empty(2**29, "u1")
begun = threading.Event()
def work():
    begun.set()
    while True: tilecore.tile(x, 16, out, threads=2)
threading.Thread(target=work, daemon=True).start()
begun.wait()
""")
