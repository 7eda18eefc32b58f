"""tilecore's `tile` in the place of `numpy.tile`, which stays the object that it is; and NumPy's own back again."""

import copy
import ctypes
import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

import tilecore

pytestmark = [pytest.mark.quick, pytest.mark.whole_process]

NUMPYS = np.tile
X = np.arange(6).reshape(2, 3)


def is_ours(tile=NUMPYS):
    """Also by a name bound earlier. NumPy's result is mostly a view."""
    assert np.tile is NUMPYS
    return tile(X, 2).flags.owndata


@pytest.fixture(autouse=True)
def afterwards_it_is_numpys():
    yield
    assert not is_ours()


def theirs(A, reps):
    """Another function, which calls NumPy's."""
    return NUMPYS(A, reps)


def test_within_a_block_or_until_further_notice():
    assert not is_ours()
    with tilecore.replace_numpy_tile() as replaced:
        assert is_ours()
        calls = [np.tile(X, (2, 1)), np.tile(X, reps=(2, 1)), np.tile(A=X, reps=(2, 1)), np.tile(reps=(2, 1), A=X)]
        assert all(each.flags.owndata and each.tolist() == [*X.tolist()] * 2 for each in calls)
        for _ in range(2):
            replaced.restore()
            assert not is_ours()
    with pytest.raises(RuntimeError, match="already restored"), replaced:
        pass


def test_an_object_that_dies_restores():
    with pytest.warns(RuntimeWarning, match="the returned object was garbage-collected"):
        tilecore.replace_numpy_tile()
    assert not is_ours()
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
        assert not is_ours(), at


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))], ids=str)
def test_several_beside_profile_end_in_any_order(order):
    """Of those in force, the latest decides."""
    blocks = []
    for make in [tilecore.replace_numpy_tile, tilecore.profile] * 2:
        blocks.append(make())
        blocks[-1].__enter__()
    for n, which in enumerate(order, 1):
        blocks[which].__exit__(None, None, None)
        assert is_ours() == (order[n:] != () and max(order[n:]) in {0, 2})


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_another_function_in_the_name_crosses_two_of_ours(order):
    """It stays until its own end, and what it calls is ours."""
    ours = tilecore.replace_numpy_tile()
    (patch := mock.patch("numpy.tile", theirs)).start()
    ends = [ours.restore, patch.stop, tilecore.replace_numpy_tile().restore]
    for n, which in enumerate(order, 1):
        assert np.tile is (theirs if 1 in order[n - 1 :] else NUMPYS)
        assert np.tile(X, 2).flags.owndata == ({0, 2} & {*order[n - 1 :]} != set())
        ends[which]()


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


class Dispatching(np.ndarray):
    """NumPy does not dispatch on what `__array__` returned."""

    def __array_function__(self, function, types, args, kwargs):
        return "its own"


class Meta(type):
    def __getattribute__(cls, name):
        return super().__getattribute__(name) if name != "__array_function__" else fail_at_first(KeyError)(1)


PLAIN = [
    *[(X, True), (X, 1.0), ([], -1), (X, ""), (X, {2}), (X, b"\2"), (X, -1), (X, "x"), (X, None), (X, [[2]])],
    *[(X, 10**30), (X, (1, 2**62, 2**62)), (X, 65 * [1]), ([[1], 1], 2)],
]
CALLS = {
    **{k.__name__: lambda own, k=k: (own(array=fail_at_first(k)), 2) for k in (TypeError, ValueError, KeyError)},
    **{k.__name__: lambda own, k=k: ([own(array=fail_at_first(k))], 2) for k in (RuntimeError, BufferError)},
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
    "array of a class that dispatches": lambda own: (own(array=X.view(Dispatching)), 2),
    "metaclass that raises": lambda own: (Meta("Own", (), {"__array__": lambda self, **options: X})(), 2),
    "an iterator": lambda own: (X, iter([True, 2])),
    **{repr(given): lambda own, given=given: given for given in PLAIN},
}  # fmt: skip


@pytest.mark.parametrize("names", [(), ("reps",), ("A", "reps"), ("reps", "A")], ids=str)
@pytest.mark.parametrize("make", CALLS.values(), ids=CALLS)
def test_a_call_ends_as_numpys(make, names):
    """Also one that tilecore.tile refuses. The caller's code runs as often, in this order; what it raises is raised."""

    def outcome():
        own = Recorder()
        arguments = dict(zip(("A", "reps"), make(own), strict=True))
        named = {name: arguments.pop(name) for name in names}
        try:
            result = np.asarray(np.tile(*arguments.values(), **named))
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


def test_sizes_beyond_all_bounds_end_as_numpys(program):
    """Where NumPy's function crashes, or would fill all memory, a ValueError. It is called in a child process each."""
    program("""
import itertools, resource
N = sys.maxsize // 2 + 1
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if N > 2**32:  # else addresses are few anyhow
    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))

def outcome(x, reps):
    try:
        return f"{numpy.tile(x, reps).shape}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def numpys(x, reps):
    readable, writeable = os.pipe()
    if not (child := os.fork()):
        os.write(writeable, outcome(x, reps).encode()), os._exit(0)
    os.close(writeable), os.waitpid(child, 0)
    with open(readable) as file:
        return file.read()

mapped = numpy.memmap("x", "f8", "w+", shape=(40, 50))
inputs = [numpy.zeros(shape, "i1") for shape in ((), (0, 3), (5, 3), (4, 3))] + [numpy.zeros((2, 3)), mapped]
inputs += [numpy.ma.zeros((0, 3)), numpy.ma.zeros((4, 3), "i2"), numpy.broadcast_to(inputs[0], (4, N // 8))]
counts = [0, 7, N, N + N // 4, 2 * int(N**0.5)]
for x, reps in itertools.product(inputs, [*itertools.product(counts, repeat=2), *counts]):
    expected = numpys(x, reps)
    with tilecore.replace_numpy_tile():
        got = outcome(x, reps)
    kind, tilecores = got.split(": ")[0], got.partition(": ")[2].startswith("tile: ")
    empty = got.startswith("(") and 0 in eval(got) and expected.startswith("MemoryError")  # NumPy fills and drops it
    limit = kind == "MemoryError" and tilecores and expected.startswith("MemoryError")
    crash = kind == "ValueError" and tilecores and not expected
    assert got == expected or empty or limit or crash, (x.shape, x.dtype, reps, expected, got)
""")


def test_the_size_limit_stays(settings_stay):
    with tilecore.replace_numpy_tile():
        tilecore.set_max_bytes(100)
        with pytest.raises(MemoryError, match="^tile: "):
            np.tile(X, 100)


WRONG = [
    *[((), {}), ((X,), {}), ((X, 2, 3), {}), ((X,), {"rep": 2}), ((X, 2), {"A": X}), ((), {"a": X, "reps": 2})],
    *[((), {"reps": 2}), ((X,), {"A": X}), ((), {"A": X, "rep": 2}), ((X, 2), {"reps": 2})],
]


@pytest.mark.parametrize("arguments, named", WRONG, ids=str)
def test_a_wrong_call_is_numpys_error(arguments, named):
    with pytest.raises(TypeError) as expected:
        np.tile(*arguments, **named)
    with tilecore.replace_numpy_tile(), pytest.raises(TypeError) as error:
        np.tile(*arguments, **named)
    assert str(error.value) == str(expected.value)


def test_what_is_left_to_numpys_function(tmp_path):
    """The memory's order where nothing is repeated, memmaps, and what overrides it, with the arguments as given."""

    class Duck:
        def __array_function__(self, function, types, args, kwargs):
            return function is NUMPYS, args[1:], [*kwargs]

    own = type("Own", (np.ndarray,), {"__array_function__": Duck.__array_function__})
    mapped = np.memmap(tmp_path / "x", "i4", "w+", shape=(2, 3))
    with tilecore.replace_numpy_tile():
        for reps in (1, (), (1, 1, 1), [1], np.array([1])):
            assert np.tile(X.T, reps).flags.f_contiguous and np.tile(X.T, reps=reps).flags.f_contiguous
            assert not np.tile(memoryview(b"abcd")[::2], reps).flags.writeable  # a view of that memory
        np.tile(mapped, 2).flush()
        np.tile(Recorder()(array=mapped), 2).flush()
        for duck in (Duck(), X.view(own)):
            assert np.tile(duck, [2]) == (True, ([2],), []) and np.tile(duck, reps=2) == (True, (), ["reps"])
            assert np.tile(reps=2, A=duck) == (True, (), ["reps", "A"])


def test_threads_replace_while_others_call():
    def replace():
        with tilecore.replace_numpy_tile():
            return is_ours()

    def call():
        return (np.tile(X, reps=2) == [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]).all()

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda work: all(work() for _ in range(500)), [replace, call] * 2))


def test_pickles_and_copies_are_its_own():
    before = [pickle.dumps(NUMPYS, protocol=n) for n in range(6)]
    with tilecore.replace_numpy_tile(), tilecore.profile():
        assert [pickle.dumps(np.tile, protocol=n) for n in range(6)] == before
        assert copy.copy(np.tile) is copy.deepcopy(np.tile) is pickle.loads(before[0]) is NUMPYS


def test_compiled_code_may_keep_the_pointer():
    """It may also pass an empty tuple of names."""
    names, pair = (), (ctypes.py_object * 2)(X, 2)
    find = ctypes.pythonapi.PyVectorcall_Function
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.py_object]
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, type(pair), ctypes.c_size_t, ctypes.py_object)
    with tilecore.replace_numpy_tile():
        kept = kind(find(NUMPYS))
        assert is_ours(lambda A, reps: kept(NUMPYS, pair, 2, names))
    assert find(NUMPYS) != ctypes.cast(kept, ctypes.c_void_p).value
    assert not is_ours(lambda A, reps: kept(NUMPYS, pair, 2, names))
