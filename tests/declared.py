"""Functions and structs of compiled modules, for ctypes: as Cython's signatures and the .pxd files declare them."""

import ctypes
import functools
import re
from contextlib import contextmanager
from ctypes import byref
from pathlib import Path

from tilecore import capi
from tilecore._core.plan import nest, plan

INT, SIZE, POINTER = ctypes.c_int, ctypes.c_ssize_t, ctypes.c_void_p
ITEMSIZE = 4
KINDS = {"void": None, "int": ctypes.c_int, "bint": ctypes.c_int, "Py_ssize_t": SIZE, "char const *": ctypes.c_char_p}
CORE = Path(__file__).parent.parent / "tilecore" / "_core"
PXD = "".join(path.read_text(encoding="utf-8") for path in CORE.rglob("*.pxd"))


def c_sizes(integers):
    return (SIZE * len(integers))(*integers)


def read_capsule(capsule):
    """The address in a capsule, and its name, which is a function's signature."""
    api, parts = ctypes.pythonapi, (ctypes.py_object, ctypes.c_char_p)
    name = ctypes.PYFUNCTYPE(*parts[::-1])(("PyCapsule_GetName", api))(capsule)
    return ctypes.PYFUNCTYPE(POINTER, *parts)(("PyCapsule_GetPointer", api))(capsule, name), name.decode()


def get_function(module, name, kind=ctypes.CFUNCTYPE):
    address, signature = read_capsule(module.__pyx_capi__[name])
    result, arguments = re.fullmatch(r"(.+?) ?\((.*)\)", signature).groups()
    arguments = re.sub(r"\benum \w+", "int", arguments).split(", ")
    arguments = [POINTER if each.endswith("*") else KINDS[each] for each in arguments]
    return kind(KINDS.get(result, POINTER), *arguments)(address)


@functools.cache
def get_struct(name):
    """A struct of the .pxd files. One of a C header has room, but no fields, so it must be the last field."""
    fields, body = [], re.search(rf"^ *(?:cdef|ctypedef) struct {name}:.*\n((?: +.+\n)+)", PXD, re.MULTILINE)[1]
    if body.strip() == "pass" or name == "tilecore_rows":
        return ctypes.c_char * 4096
    for kind, names in re.findall(r"^ +(?:const )?(\w+) (.+?)(?: +#.*)?$", body, re.MULTILINE):
        for star, field, length in re.findall(r"(\*?)(\w+)(?:\[(\w+)\])?", names):
            of_enum = ctypes.c_int if f"cdef enum {kind}:" in PXD else None
            made = POINTER if star else KINDS.get(kind) or of_enum or get_struct(kind)
            fields.append((field, made * int(re.search(rf"\b{length} = (\d+)", PXD)[1]) if length else made))
    assert not any(made is ctypes.c_char * 4096 for _, made in fields[:-1]), name
    return type(name, (ctypes.Structure,), {"_fields_": fields})


plan_make, plan_free, execute, execute_region, tile_once = (
    get_function(capi, f"tilecore_{name}")
    for name in ("plan_make", "plan_free", "plan_execute", "plan_execute_region", "tile")
)


@contextmanager
def make_plan(shape, reps, itemsize):
    status = INT(-1)
    plan = plan_make(len(shape), c_sizes(shape), c_sizes(reps), itemsize, byref(status))
    assert status.value == capi.TILECORE_OK
    yield plan
    plan_free(plan)


plan_init, region_init = get_function(plan, "plan_init"), get_function(plan, "region_init")
nest_init = get_function(nest, "nest_init")
region_iter_init, next_piece = get_function(nest, "region_iter_init"), get_function(nest, "next_piece")
Nest, Plan, RegionIter, StridedArray = map(get_struct, ["Nest", "Plan", "RegionIter", "StridedArray"])


def place_of(strides):
    return StridedArray(contiguous=strides is None, strides=tuple(strides or ()))


def plan_of(shape, reps=(), itemsize=ITEMSIZE):
    assert plan_init(byref(made := Plan()), len(shape), c_sizes(shape), len(reps), c_sizes(reps), itemsize)
    return made


def window_of(tiling, start, shape):
    stop = [first + n for first, n in zip(start, shape, strict=True)]
    assert region_init(byref(made := Plan()), byref(tiling), c_sizes(start), c_sizes(stop))
    return made


def nest_of(tiling, src_strides, dst_strides):
    nest_init(byref(tiling), byref(place_of(src_strides)), byref(place_of(dst_strides)), byref(made := Nest()))
    return made
