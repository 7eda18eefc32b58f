"""The C functions as Numba and ctypes find them: by the name of the module and of the function. See docs/c-api.md."""

import ctypes
import os
import re
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from declared import (
    INT,
    POINTER,
    SIZE,
    c_sizes,
    execute,
    execute_region,
    get_function,
    make_plan,
    read_capsule,
    tile_once,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from ways import bounds, check, refers, repeats_of_axes

import tilecore
from tilecore import capi

pytestmark = pytest.mark.quick

# The table of ABI 1.0, by which modules were compiled that stay as they are. Functions are only added at its end.
ABI = {
    "plan_new": "tilecore_plan *(int, Py_ssize_t const *, Py_ssize_t const *, Py_ssize_t)",
    "plan_make": "tilecore_plan *(int, Py_ssize_t const *, Py_ssize_t const *, Py_ssize_t, int *)",
    "plan_free": "void (tilecore_plan *)",
    "plan_output_shape": "void (tilecore_plan const *, Py_ssize_t *)",
    "plan_nbytes": "Py_ssize_t (tilecore_plan const *)",
    "plan_execute": "void (tilecore_plan const *, void const *, Py_ssize_t const *, void *, Py_ssize_t const *, int)",
    "plan_execute_region": "void (tilecore_plan const *, void const *, Py_ssize_t const *, void *, "
    "Py_ssize_t const *, Py_ssize_t const *, Py_ssize_t const *, int)",
    "output_shape": "int (int, Py_ssize_t const *, int, Py_ssize_t const *, Py_ssize_t, Py_ssize_t *, Py_ssize_t *)",
    "tile": "int (int, Py_ssize_t const *, Py_ssize_t const *, int, Py_ssize_t const *, Py_ssize_t, void const *, "
    "void *, Py_ssize_t const *, int)",
    "status_text": "char const *(int)",
    "array_tile": "PyObject *(PyObject *, PyObject *)",
}
STATUSES = "OK BAD_RANK BAD_SHAPE BAD_ITEMSIZE BAD_REPEATS OVERFLOW NO_MEMORY NOT_IMPORTED".split()

plan_new = get_function(capi, "tilecore_plan_new", kind=ctypes.PYFUNCTYPE)
plan_make, plan_free, plan_output_shape, plan_nbytes, output_shape, status_text = (
    get_function(capi, f"tilecore_{name}")
    for name in ("plan_make", "plan_free", "plan_output_shape", "plan_nbytes", "output_shape", "status_text")
)


def test_the_abi_of_1_0():
    table, _ = read_capsule(capi._C_API)
    assert INT.from_address(table).value == 1
    found = (POINTER * len(ABI)).from_address(table + 2 * ctypes.sizeof(INT))
    for name, signature, address in zip(ABI, ABI.values(), found, strict=True):
        assert read_capsule(capi.__pyx_capi__[f"tilecore_{name}"]) == (address, signature)


def test_the_headers_numbers_are_the_modules():
    header = Path(tilecore.get_include(), "tilecore", "tilecore.h").read_text(encoding="utf-8")
    found = re.findall(r"^ +(TILECORE_\w+) = (\d+)", header, re.MULTILINE)
    found += re.findall(r"^#define (TILECORE_MAX_RANK) (\d+)", header, re.MULTILINE)
    mine = {name: n for name, n in vars(capi).items() if name.startswith("TILECORE_")}
    assert {name: int(n) for name, n in found} == mine
    table = header[header.index("typedef struct tilecore_api {") : header.index("} tilecore_api;")]
    functions, minor = re.findall(r"\(\*(\w+)\)", table), re.search(r"ABI_MINOR (\d+)", header)[1]
    assert functions[: len(ABI)] == [*ABI] and (len(functions) > len(ABI)) == (minor != "0")
    statuses = [mine[f"TILECORE_{name}"] for name in STATUSES]
    assert statuses == list(range(8)) and len(mine) == 9
    assert len({status_text(n) for n in statuses}) == 8
    assert {status_text(n) for n in (-1, 8, 2**31 - 1, -(2**31))} == {b"unknown status"}


LARGEST = 2**63 - 1 if ctypes.sizeof(SIZE) == 8 else 2**31 - 1
HALF = LARGEST // 2 + 1
REFUSED = {
    "axes": ([1] * 65, [1] * 65, 1, "BAD_RANK", "the rank must be from 0 to 64"),
    "repeats": ([1], [1] * 65, 1, "BAD_RANK", "the rank must be from 0 to 64"),
    "extent": ([2, -1], [1, 1], 4, "BAD_SHAPE", "extents must not be negative"),
    "itemsize": ([2], [1], -1, "BAD_ITEMSIZE", "the itemsize must not be negative"),
    "repeat": ([2, 2], [1, -1], 4, "BAD_REPEATS", "repeats must not be negative, got -1 for axis 1"),
    "axis": ([2], [HALF], 1, "OVERFLOW", "axis 0 overflows"),
    "elements": ([2, 1], [1, HALF], 1, "OVERFLOW", "overflows at axis 1"),
    "bytes": ([HALF], [1], 2, "OVERFLOW", f"more than {LARGEST} bytes"),
    "empty": ([0, 2], [1, HALF], 1, "OVERFLOW", "axis 1 overflows"),
    "order": ([-1], [-1], -1, "BAD_SHAPE", "extents must not be negative"),
}


@pytest.mark.parametrize(("shape", "reps", "itemsize", "status", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_has_a_status_and_writes_nothing(shape, reps, itemsize, status, text):
    status = getattr(capi, "TILECORE_" + status)
    sizes, nbytes, found = c_sizes([-7] * 65), SIZE(-7), INT(-7)
    extents, counts = c_sizes(shape), c_sizes(reps)
    assert output_shape(len(shape), extents, len(reps), counts, itemsize, sizes, ctypes.byref(nbytes)) == status
    assert set(sizes) == {-7} and nbytes.value == -7
    source, target = ctypes.create_string_buffer(b"a" * 64), ctypes.create_string_buffer(b"b" * 64)
    assert tile_once(len(shape), extents, None, len(reps), counts, itemsize, source, target, None, 1) == status
    assert set(target.raw) == {ord("b"), 0}
    if len(reps) == len(shape):
        assert plan_make(len(shape), extents, counts, itemsize, ctypes.byref(found)) is None
        assert found.value == status
        with pytest.raises(ValueError, match="tilecore_plan_new: ") as error:
            plan_new(len(shape), extents, counts, itemsize)
        assert text in str(error.value)
        assert ("by axis [(" in str(error.value)) == (0 < len(shape) <= 64)


@pytest.mark.parametrize("ndim", [-1, -(2**31), 2**31 - 1])
def test_a_rank_out_of_range_is_refused(ndim):
    one, made = c_sizes([1]), plan_new(2, c_sizes([2, 3]), c_sizes([1, 2]), 4)
    assert plan_nbytes(made) == 2 * 3 * 2 * 4
    plan_free(made)
    assert output_shape(ndim, one, 1, one, 1, None, None) == capi.TILECORE_BAD_RANK
    assert output_shape(1, one, ndim, one, 1, None, None) == capi.TILECORE_BAD_RANK
    with pytest.raises(ValueError, match=f"tilecore_plan_new: the rank must be .* rank {ndim}"):
        plan_new(ndim, None, None, 1)


@pytest.mark.parametrize(("shape", "reps", "itemsize"), [
    ((0,), (2,), 4), ((2, 3), (0, 1), 4), ((3,), (2,), 0), ((0,), (), 1), ((HALF, HALF), (0, 0), 8),
])  # fmt: skip
def test_an_empty_result_needs_no_memory(shape, reps, itemsize):
    extents, counts, nbytes = c_sizes(shape), c_sizes(reps), SIZE(-7)
    assert tile_once(len(shape), extents, None, len(reps), counts, itemsize, None, None, None, 0) == capi.TILECORE_OK
    assert output_shape(len(shape), extents, len(reps), counts, itemsize, None, ctypes.byref(nbytes)) == 0
    assert nbytes.value == 0
    if len(shape) == len(reps):
        with make_plan(shape, reps, itemsize) as plan:
            assert plan_nbytes(plan) == 0
            steps, zeros = c_sizes([1] * len(shape)), c_sizes([0] * len(shape))
            execute(plan, None, None, None, None, 0)
            execute(plan, None, steps, None, steps, 0)
            execute_region(plan, None, steps, None, steps, zeros, zeros, 0)


def strides(draw, array):
    """NULL stands for those of C order."""
    return None if array.flags.c_contiguous and draw(st.booleans()) else c_sizes(array.strides)


def without_a_plan(draw, x, asked, tiled):
    """The input and `out` have any two ranks and layouts."""
    assume(not refers(x))
    want, reps = tiled(x), repeats_of_axes(asked, x.ndim)
    asked = (len(reps), c_sizes(reps), x.itemsize)
    sizes, nbytes = c_sizes([-7] * (want.ndim + 1)), SIZE(-7)
    assert output_shape(x.ndim, c_sizes(x.shape), *asked, sizes, ctypes.byref(nbytes)) == 0
    assert tuple(sizes)[: want.ndim + 1] == (*want.shape, -7) and nbytes.value == want.size * x.itemsize

    def call(out=None, threads=1):
        out = np.empty(want.shape, x.dtype) if out is None else out
        ends = (x.ctypes.data, out.ctypes.data, strides(draw, out), threads)
        assert tile_once(x.ndim, c_sizes(x.shape), strides(draw, x), *asked, *ends) == 0
        return out

    return want, call


def by_plan(draw, x, asked, tiled):
    """All of it, or a region, between equal ranks."""
    assume(not refers(x))
    want, reps = tiled(x), repeats_of_axes(asked, x.ndim)
    x = x[(*(None,) * (len(reps) - x.ndim), ...)]
    start, stop = bounds(draw, want.shape) if draw(st.booleans()) else (None, None)
    part = want[(*map(slice, start, stop), ...)] if start is not None else want

    def call(out=None, threads=1):
        out = np.empty(part.shape, x.dtype) if out is None else out
        ends = (x.ctypes.data, strides(draw, x), out.ctypes.data, strides(draw, out))
        with make_plan(x.shape, reps, x.itemsize) as plan:
            sizes = c_sizes([-7] * len(reps))
            plan_output_shape(plan, sizes)
            assert tuple(sizes)[: want.ndim] == want.shape and plan_nbytes(plan) == want.size * x.itemsize
            if start is None:
                execute(plan, *ends, threads)
            else:
                execute_region(plan, *ends, c_sizes(start), c_sizes(stop), threads)
        return out

    return part, call


@pytest.mark.parametrize("way", [without_a_plan, by_plan])
@given(st.data())
def test_every_way(oracle, way, data):
    check(oracle, way, data.draw)


START = f"""
sys.path.insert(0, {os.path.dirname(__file__)!r})
from declared import c_sizes, tile_once
x, out = numpy.ones(2**20, "u1"), numpy.empty((24, 2**20), "u1")
def more_threads(number=0, calls=200):  # after a job that was a loss, the next 128 calls at most go alone
    before, made = threads(), 0
    sizes, reps = c_sizes([2**20]), c_sizes([24, 1])
    while calls and not made:
        assert tile_once(1, sizes, None, 2, reps, 1, x.ctypes.data, out.ctypes.data, None, number) == 0
        calls, made = calls - 1, len(threads() - before)
    assert (out == x).all()
    return made
def in_a_child(*given):                 # no worker lives on after a fork
    pid = os.fork()
    if pid == 0: os._exit(more_threads(*given))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_the_default_number_of_threads(program):
    """C code without the GIL reads what is set for the process, else the processors it may use, and 1 in a child."""
    program("""
assert more_threads() == tilecore.get_num_threads() - 1
assert in_a_child(0, 1) == 0
""")
    program("""
assert (more_threads(), in_a_child(1, 1)) == (2, 0)        # TILECORE_NUM_THREADS
assert more_threads(2) == 1 and more_threads(-5) == 1
in_a_child(1, 1)
tilecore.set_num_threads(5)
with tilecore.num_threads(2):                           # of Python's calls
    assert more_threads() == 4
assert (in_a_child(1, 1), more_threads(1, 1)) == (0, 0)
assert in_a_child() == 4                                # set: of children too
tilecore.set_num_threads(None)
assert in_a_child() == 2
found = []
together(lambda: found.append(more_threads()))
assert found == [2], found
""", TILECORE_NUM_THREADS="3")  # fmt: skip


@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_the_headers_example_compiles_and_runs(standard, tmp_path, compile_c):
    """The header is included twice."""
    header = Path(tilecore.get_include(), "tilecore", "tilecore.h")
    overview = header.read_text(encoding="utf-8").partition("*/")[0]
    code = "".join(re.findall(r"^ \*     (.*\n)", overview, re.MULTILINE))
    code += "#include <tilecore/tilecore.h>\nstatic int prepare(void) { return import_tilecore(); }\n"
    code = code.replace("static int", 'extern "C" int' if "++" in standard else "int")  # which ctypes finds
    source, module = tmp_path / "example", tmp_path / "example.so"
    source.write_text(code, encoding="utf-8")
    flags = [f"-I{header.parent.parent}", "-isystem", sysconfig.get_path("include"), "-Wundef", "-Wconversion"]
    flags += ["-Wold-style-cast"] * ("++" in standard)
    compile_c(*flags, "-shared", "-fPIC", source, "-o", module, standard=standard)
    assert ctypes.PyDLL(str(module)).prepare() == 0
    example = ctypes.CDLL(str(module))
    x = np.arange(3 * 20, dtype="f4")
    rows, tiled = np.zeros((8, 3), "f4"), np.zeros((3, 8, 15), "f4")
    assert example.repeat_row(POINTER(x.ctypes.data), POINTER(rows.ctypes.data)) == capi.TILECORE_OK
    assert (rows == x[:3]).all()
    assert example.tile_each(POINTER(x.ctypes.data), POINTER(tiled.ctypes.data), 3) == capi.TILECORE_OK
    assert (tiled == np.tile(x.reshape(3, 4, 5), (1, 2, 3))).all()
