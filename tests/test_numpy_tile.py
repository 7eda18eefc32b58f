"""tilecore's `tile` in the place of `numpy.tile`, and NumPy's own back again."""

import copy
import functools
import gc
import inspect
import itertools
import pickle
from multiprocessing.reduction import ForkingPickler
from unittest import mock

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
def test_an_exception_at_any_moment_restores(function, raised_between):
    for at, _ in enumerate(raised_between(function)):
        assert np.tile is NUMPYS, at


@pytest.mark.parametrize("another", [None, theirs])
@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_several_are_restored_in_any_order(order, another, monkeypatch):
    """Another replacement, after the first of ours, stays."""
    monkeypatch.setattr(np, "tile", np.tile)  # set back at the end, whatever happens
    several = [tilecore.replace_numpy_tile()]
    if another:
        np.tile = another
    several += [tilecore.replace_numpy_tile() for _ in range(2)]
    for which in order:
        assert another or is_ours()
        several[which].restore()
    assert np.tile is (another or NUMPYS)


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))], ids=str)
def test_beside_profile_in_any_order(order):
    """Of those in force, `numpy.tile` is the latest."""
    blocks, found = [], []
    for make in [tilecore.replace_numpy_tile, tilecore.profile] * 2:
        blocks.append(make())
        blocks[-1].__enter__()
        found.append(np.tile)
    for n, which in enumerate(order, 1):
        blocks[which].__exit__(None, None, None)
        assert np.tile is found[max(order[n:])] if order[n:] else np.tile is NUMPYS


def test_overlapping_blocks_keep_none_that_has_ended():
    replaced = tilecore.replace_numpy_tile()
    for _ in range(50):
        other = tilecore.replace_numpy_tile()
        replaced.restore()
        replaced = other
    gc.collect()
    kept = sum(type(found) is type(np.tile) for found in gc.get_objects())
    replaced.restore()
    assert kept < 10 and np.tile is NUMPYS


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_another_replacement_crosses_two_of_ours(order):
    """It stays until its own end. What it sets back may be ours, in force or no more; then it is ours that has to go."""
    ours = tilecore.replace_numpy_tile()
    (patch := mock.patch("numpy.tile", theirs)).start()
    ends = [ours.restore, patch.stop, tilecore.replace_numpy_tile().restore]
    for n, which in enumerate(order, 1):
        ends[which]()
        left = order[n:]
        assert (np.tile is theirs) == (1 in left and 2 not in left)
        assert np.tile is theirs or left == (2,) or is_ours() == bool(left)
    assert np.tile == NUMPYS
    assert np.tile is NUMPYS or order[-1] == 1
    np.tile = NUMPYS


def test_what_was_kept_beyond_the_block_is_numpys():
    with tilecore.replace_numpy_tile():
        from numpy import tile
    with tilecore.replace_numpy_tile():
        assert tile(X.T, 1).flags.c_contiguous
    assert tile(X.T, 1).flags.f_contiguous


class Recorder:
    """Makes objects with the given methods, and notes the calls of these methods."""

    def __init__(self):
        self.log = []

    def __call__(self, **methods):
        def noted(name, result):
            def method(own, *arguments, **options):
                self.log.append(name)
                return result(len(self.log)) if callable(result) else result

            return method

        return type("Own", (), {f"__{name}__": noted(name, result) for name, result in methods.items()})()


def fail_at_first(kind):
    def result(call):
        if call == 1:
            raise kind("its own")
        return X

    return result


CALLS = {
    **{kind.__name__: lambda own, k=kind: (own(array=fail_at_first(k)), 2) for kind in (TypeError, ValueError, KeyError)},
    **{kind.__name__: lambda own, k=kind: ([own(array=fail_at_first(k))], 2) for kind in (RuntimeError, BufferError)},
    "refused, -1": lambda own: (own(array=X), -1),
    "refused, overflow": lambda own: (own(array=X), (2**62, 2**62)),
    "refused, bool": lambda own: (own(array=X), [True, 2]),
    "a list of them": lambda own: ([own(array=X), own(array=X)], [2, 1.0]),
    "iterable": lambda own: (X, own(iter=lambda call: iter((2, 2)))),
    "one-shot iterable": lambda own: (X, own(iter=iter([2, True]))),
    "iterable that raises": lambda own: (X, own(iter=fail_at_first(ValueError))),
    "integer": lambda own: (X, own(index=2)),
    "integer that raises": lambda own: (X, own(index=fail_at_first(ValueError))),
    "integers": lambda own: (X, [own(index=2), 1.0]),
    "number": lambda own: (X, [own(index=2, eq=False, rmul=6), own(index=1, eq=True, rmul=3)]),
    "DLPack only": lambda own: (own(dlpack=fail_at_first(BufferError), dlpack_device=(1, 0)), 2),
    "array function": lambda own: (own(array_function="its own", array=X), 2),
    "array function of reps": lambda own: (X, own(array_function="its own", iter=lambda call: iter((2, 2)))),
    "an iterator": lambda own: (X, iter([True, 2])),
    **{
        repr(given): lambda own, given=given: given
        for given in [
            *[(X, True), (X, 1.0), ([], -1), (X, ""), (X, {2}), (X, b"\2"), (X, -1), (X, "x"), (X, None), (X, [[2]])],
            *[(X, 10**30), (X, (1, 2**62, 2**62)), (X, 65 * [1]), ([[1], 1], 2)],
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("make", CALLS.values(), ids=CALLS)
def test_a_call_ends_as_numpys(make):
    """Also one that tilecore.tile refuses. The caller's code runs as often, in this order; what it raises is raised."""

    def outcome():
        own = Recorder()
        A, reps = make(own)
        try:
            result = np.asarray(np.tile(A, reps))
        except Exception as error:
            return type(error), str(error), type(error.__context__), own.log
        return result.dtype, result.shape, result.dtype == object or result.tolist(), own.log

    expected = outcome()
    with tilecore.replace_numpy_tile():
        assert outcome() == expected


@pytest.mark.parametrize("reps", [[2], np.array([2])])
def test_repeats_that_the_arrays_code_changes(reps):
    """They are read before the array, as by NumPy."""

    class Changing:
        def __array__(self, dtype=None, copy=None):
            reps[0] = -1
            return np.arange(2)

    with tilecore.replace_numpy_tile():
        assert np.tile(Changing(), reps).tolist() == [0, 1, 0, 1]


def test_the_size_limit_stays(settings_stay):
    with tilecore.replace_numpy_tile():
        tilecore.set_max_bytes(100)
        with pytest.raises(MemoryError, match="^tile: "):
            np.tile(X, 100)


def test_it_looks_like_numpys():
    with tilecore.replace_numpy_tile():
        assert inspect.signature(np.tile) == inspect.signature(NUMPYS)
        assert np.tile.__doc__ == NUMPYS.__doc__ and np.tile.__name__ == "tile"
        assert np.tile.__wrapped__ is NUMPYS and np.tile._implementation is NUMPYS._implementation
        text = pickle.dumps(np.tile)  # by its name: another process gets what it has there
        assert pickle.loads(text) is np.tile
        with pytest.raises(TypeError, match=r"^tile\(\) takes exactly 2"):
            np.tile([1, 2])
    assert pickle.loads(text) is NUMPYS


@pytest.mark.parametrize("replaces", [tilecore.replace_numpy_tile, tilecore.profile])
def test_copies_and_pickles(replaces):
    """Of NumPy's function, of the replacement, and of one that was kept, at any time; they load without tilecore."""
    with replaces():
        kept = np.tile

    def check(*functions):
        for function in functions:
            assert copy.copy(function) is copy.deepcopy(function) is np.tile
            made = functools.partial(function, reps=2)
            for dump in [ForkingPickler.dumps, *(functools.partial(pickle.dumps, protocol=n) for n in range(6))]:
                assert b"tilecore" not in bytes(dump(function)) and pickle.loads(dump(function)) is np.tile
                assert pickle.loads(dump(made))([1]).tolist() == [1, 1]
        assert pickle.loads(pickle.dumps(np.repeat)) is np.repeat

    check(NUMPYS, kept)
    with replaces():
        check(NUMPYS, kept, np.tile)
        with tilecore.replace_numpy_tile():
            check(NUMPYS, kept, np.tile)


@pytest.mark.parametrize("replaces", [tilecore.replace_numpy_tile, tilecore.profile])
def test_a_library_finds_the_function_in_its_table(replaces):
    """As astropy does: its table is made when it is imported, before the replacement or after. It is given NumPy's own
    function, and the repeats."""

    class Duck:
        def __array_function__(self, function, types, args, kwargs):
            return tables["before"][function], tables["meanwhile"][function], function is NUMPYS, args[1]

    tables = {"before": {np.tile: "tile"}}
    with replaces():
        tables["meanwhile"] = {np.tile: "tile"}
        assert np.tile == NUMPYS and np.tile != np.repeat and tables["before"][np.tile] == "tile"
        assert np.tile(Duck(), 2) == NUMPYS(Duck(), 2) == ("tile", "tile", True, 2)
    assert tables["meanwhile"][np.tile] == "tile"
    assert np.tile(Duck(), 2) == ("tile", "tile", True, 2)


def test_it_is_a_method_of_a_class_as_functions_are():
    with tilecore.replace_numpy_tile():
        kind = type("Own", (list,), {"tile": np.tile})
        assert kind.tile is np.tile and kind([1, 2]).tile(2).tolist() == [1, 2, 1, 2]


def test_numpys_name_is_deleted_meanwhile():
    """As pytest's monkeypatch.delattr does: what the block raises comes out, and there is nothing to restore."""
    try:
        with pytest.raises(KeyError), tilecore.replace_numpy_tile():
            del np.tile
            raise KeyError
        assert not hasattr(np, "tile")
    finally:
        np.tile = NUMPYS
