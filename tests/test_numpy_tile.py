"""tilecore's `tile` in the place of `numpy.tile`, and NumPy's own back again."""

import copy
import gc
import inspect
import os
import pickle
import sys
import sysconfig

import numpy as np
import pytest

import tilecore

pytestmark = [pytest.mark.quick, pytest.mark.whole_process]

NUMPYS = np.tile
X = np.arange(6).reshape(2, 3)


@pytest.fixture(autouse=True)
def afterwards_it_is_numpys():
    yield
    assert np.tile is NUMPYS


def is_ours():
    """Where every repeat is 1, NumPy keeps the input's layout."""
    return np.tile(np.zeros((2, 2), order="F"), 1).flags.c_contiguous


def theirs(A, reps):
    """Another replacement."""


def test_within_a_block():
    assert not is_ours()
    with tilecore.replace_numpy_tile():
        assert is_ours()
        assert np.tile(X, (2, 1)).tolist() == np.tile(A=X, reps=(2, 1)).tolist() == [*X.tolist()] * 2
    assert not is_ours()


def test_until_further_notice():
    replaced = tilecore.replace_numpy_tile()
    assert is_ours()
    for _ in range(2):
        replaced.restore()
        assert not is_ours()
    with pytest.raises(RuntimeError, match="already restored"), replaced:
        pass


def test_an_object_that_dies_restores():
    with pytest.warns(RuntimeWarning, match="the returned object was garbage-collected"):
        tilecore.replace_numpy_tile()
    assert np.tile is NUMPYS
    replaced = [tilecore.replace_numpy_tile()]
    replaced.append(replaced)
    inner = tilecore.replace_numpy_tile()
    with replaced[0]:  # and no warning
        pass
    del replaced
    assert is_ours()
    inner.restore()


def within():
    with tilecore.replace_numpy_tile(), tilecore.replace_numpy_tile() as inner:
        np.tile(X, 2)
    return inner


def without():
    replaced = tilecore.replace_numpy_tile()
    try:
        np.tile(X, 2)
    finally:
        replaced.restore()


@pytest.mark.filterwarnings("ignore:replace_numpy_tile. the returned object was garbage-collected:RuntimeWarning")
@pytest.mark.parametrize("function", [within, without])
def test_an_exception_at_any_moment_restores(function):
    """The exception comes between any two instructions of Python, as from a signal handler."""

    class Stop(BaseException):
        pass

    def run(at):
        """How many instructions; an exception comes before that number."""
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            frame.f_trace_opcodes = True
            count += event == "opcode"
            if count == at:
                raise Stop
            return trace

        before = sys.gettrace()
        gc.disable()  # an exception in another's callback of the collector would be lost
        sys.settrace(trace)
        try:
            function()
        except Stop:
            pass
        finally:
            sys.settrace(before)
            gc.enable()
        return count

    for at in range(1, run(-1)):
        run(at)
        assert np.tile is NUMPYS, at


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")) and sys.version_info < (3, 14),
    reason="a child of such a fork may hang in this Python, without tilecore too",
)
def test_fork_while_another_thread_replaces(program):
    """The child can replace and restore numpy.tile, whatever the other thread was doing."""
    program("""
import signal, threading, warnings
warnings.simplefilter("ignore")     # of the threads, which here are there
def work():
    while True: tilecore.replace_numpy_tile().restore()
for _ in range(3): threading.Thread(target=work, daemon=True).start()
def child():
    signal.alarm(20)
    with tilecore.replace_numpy_tile(): numpy.tile([1], 2)
for _ in range(60): forked(child)
""")


@pytest.mark.parametrize("order", ["012", "021", "102", "120", "201", "210"])
def test_several_are_restored_in_any_order(order):
    several = [tilecore.replace_numpy_tile() for _ in range(3)]
    for which in order:
        assert is_ours()
        several[int(which)].restore()
    assert np.tile is NUMPYS


@pytest.mark.parametrize("order", ["01", "10"])
def test_another_replacement_stays_in_any_order(order, monkeypatch):
    monkeypatch.setattr(np, "tile", np.tile)  # set back at the end, whatever happens
    several = [tilecore.replace_numpy_tile()]
    np.tile = theirs
    several.append(tilecore.replace_numpy_tile())
    for which in order:
        several[int(which)].restore()
    assert np.tile is theirs


def test_another_replacement_between_two_of_ours(monkeypatch):
    """Theirs comes back when the inner one ends, and ours when theirs ends."""
    with tilecore.replace_numpy_tile():
        with monkeypatch.context() as patch:
            patch.setattr(np, "tile", theirs)
            with tilecore.replace_numpy_tile():
                assert is_ours()
            assert np.tile is theirs
        assert is_ours()


def test_another_replacement_that_outlives_ours(monkeypatch):
    """It stays; what it sets back later gives NumPy's results again."""
    with monkeypatch.context() as patch:
        with tilecore.replace_numpy_tile():
            ours = np.tile
            patch.setattr(np, "tile", len)
        assert np.tile is len
    assert np.tile is ours and not is_ours()
    np.tile = NUMPYS


def test_what_was_kept_beyond_the_block_is_numpys():
    with tilecore.replace_numpy_tile():
        from numpy import tile
    with tilecore.replace_numpy_tile():
        assert tile(X.T, 1).flags.c_contiguous
    assert tile(X.T, 1).flags.f_contiguous


@pytest.mark.parametrize(
    "given",
    [(X, True), (X, 1.0), ([], -1), (X, ""), (X, {2}), (X, b"\2"), (X, iter([True, 2]))]
    + [(X, -1), (X, "x"), (X, None), (X, [[2]]), (X, 10**30), (X, (1, 2**62, 2**62)), (X, 65 * [1]), ([[1], 1], 2)],
)
def test_what_tile_refuses_is_numpys(given):
    """numpy.tile answers such calls, or raises its own error."""

    def outcome(A, reps):
        try:
            return (result := np.tile(A, reps)).tolist(), result.dtype, result.shape
        except Exception as error:
            assert error.__context__ is None
            return type(error), str(error)

    expected = outcome(*copy.deepcopy(given))  # an iterator gives its items only once
    with tilecore.replace_numpy_tile():
        assert outcome(*given) == expected


def test_errors_of_objects_and_of_the_size_limit_stay(settings_stay):
    class Own:
        def __index__(self):
            raise ValueError("its own")

    with tilecore.replace_numpy_tile():
        with pytest.raises(ValueError, match="its own"):
            np.tile(X, Own())
        tilecore.set_max_bytes(100)
        with pytest.raises(MemoryError, match="^tile: "):
            np.tile(X, 100)


def test_it_looks_like_numpys():
    with tilecore.replace_numpy_tile():
        assert inspect.signature(np.tile) == inspect.signature(NUMPYS)
        assert np.tile.__doc__ == NUMPYS.__doc__ and np.tile.__name__ == "tile"
        assert np.tile.__wrapped__ is NUMPYS
        text = pickle.dumps(np.tile)  # by its name: another process gets what it has there
        assert pickle.loads(text) is np.tile
    assert pickle.loads(text) is NUMPYS


def test_other_libraries_arrays_are_asked():
    class Duck:
        def __array_function__(self, function, types, args, kwargs):
            return function, args[1]

    class Unit(np.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            asked.append(function)
            return super().__array_function__(function, types, args, kwargs)

    asked = []
    with tilecore.replace_numpy_tile():
        assert np.tile(Duck(), 2) == (NUMPYS, (2,))
        result = np.tile(X.view(Unit), (1, 2))
    assert type(result) is Unit and result.tolist() == NUMPYS(X, (1, 2)).tolist()
    assert NUMPYS in asked


def test_einops_repeats_with_it(monkeypatch):
    einops = pytest.importorskip("einops")
    expected = einops.repeat(X, "a b -> n a (b k)", n=2, k=3)
    with tilecore.replace_numpy_tile():
        ours, calls = np.tile, []
        monkeypatch.setattr(np, "tile", lambda A, reps: calls.append(reps) or ours(A, reps))
        np.testing.assert_array_equal(einops.repeat(X, "a b -> n a (b k)", n=2, k=3), expected, strict=True)
        monkeypatch.undo()
    assert len(calls) == 1


def test_numpys_name_is_deleted_meanwhile():
    """As pytest's monkeypatch.delattr does: what the block raises comes out, and there is nothing to restore."""
    try:
        with pytest.raises(KeyError), tilecore.replace_numpy_tile():
            del np.tile
            raise KeyError
        assert not hasattr(np, "tile")
    finally:
        np.tile = NUMPYS


def test_errors_name_tile():
    with tilecore.replace_numpy_tile(), pytest.raises(TypeError, match=r"^tile\(\) takes exactly 2"):
        np.tile([1, 2])
