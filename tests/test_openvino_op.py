"""Tile as an OpenVINO operation: in models, against the built-in one, in files, on hard inputs."""

import gc

import numpy as np
import pytest

from tilecore import openvino as dialect

pytestmark = pytest.mark.quick

ov = pytest.importorskip("openvino")
opset1 = pytest.importorskip("openvino.opset1")
opset3 = pytest.importorskip("openvino.opset3")
integration = pytest.importorskip("tilecore.integrations.openvino_op")
Tile, replace_tile = integration.Tile, integration.replace_tile
TILES = Tile, opset1.tile

CORE = ov.Core()
X = np.arange(6, dtype=np.float32)
XX = X.reshape(2, 3)
NUMBERS = "?bhilBHILefd"


def constant(values, dtype=np.int64):
    return ov.op.Constant(np.array(values, dtype))  # opset1.constant cannot make an empty one


def model(shape, repeats, dtype=np.float32, *, length_type=np.int64):
    """A model of one input, or of two if `repeats` is the number of repeats or their shape."""
    data = opset1.parameter(shape, dtype)
    if isinstance(repeats, (int, ov.PartialShape)):
        values = opset1.parameter([repeats] if isinstance(repeats, int) else repeats, np.dtype(length_type))
        return ov.Model([Tile(data, values)], [data, values])
    return ov.Model([Tile(data, constant(repeats, length_type))], [data])


def run_all(model, inputs):
    return list(CORE.compile_model(model, "CPU")(inputs).values())


def run(model, *inputs):
    return run_all(model, inputs)[0]


def evaluated(model, *inputs):
    """Run by OpenVINO itself: a plugin would convert element types."""
    kind = model.output(0).get_element_type()
    output = ov.Tensor(kind, ov.Shape([0]))
    assert model.evaluate([output], [ov.Tensor(x.copy()) for x in inputs])
    return output.data


def partial(*dims):
    return ov.PartialShape([ov.Dimension(*dim) if isinstance(dim, tuple) else ov.Dimension(dim) for dim in dims])


def test_shapes_are_those_of_the_built_in():
    """Random ones, also of an unknown rank; repeats are known, or their number, or not even that."""
    rng = np.random.default_rng(5)
    dims, unknown = [0, -1, 1, 2, 3, (1, 2), (2, 5), (0, 3), (1, -1), (3, -1)], ov.PartialShape.dynamic()
    lengths = [partial(1), partial(3), partial(-1), unknown]
    for number in range(200):
        picked = rng.integers(0, len(dims), rng.integers(0, 5))
        shape = partial(*[dims[i] for i in picked]) if number % 8 else unknown
        if number % 3:
            repeats = constant(rng.integers(-2, 4, rng.integers(0, 5)))
        else:
            repeats = opset1.parameter(lengths[number // 3 % 4], np.int64)
        ours, theirs = (make(opset1.parameter(shape), repeats).output(0).get_partial_shape() for make in TILES)
        assert ours == theirs, (shape, repeats)


@pytest.mark.parametrize("kind", ["i64", "i32"])
def test_repeats_computed_from_shapes(kind):
    data = opset1.parameter(partial((1, 5), 2), np.float32)
    repeats = opset3.shape_of(data, kind)
    # The built-in operation refuses repeats that may be negative.
    less = opset1.subtract(repeats, constant([3, 3], kind.replace("i", "int")))
    for values, shape, result in ((repeats, partial((1, 25), 4), (9, 4)), (less, partial(-1, -1), (0, 0))):
        node = Tile(data, values)
        assert node.output(0).get_partial_shape() == shape
        assert run(ov.Model([node], [data]), np.ones((3, 2), np.float32)).shape == result


def test_symbols_survive_a_repeat_of_1():
    dims = [ov.Dimension(1, 5), ov.Dimension(2, 4)]
    for dim in dims:
        dim.set_symbol(ov.Symbol())
    output = model(ov.PartialShape(dims), [3, 1, 2]).output(0).get_partial_shape()
    assert output == partial(3, (1, 5), (4, 8))
    assert output[1].get_symbol() == dims[0].get_symbol() and not output[2].has_symbol()


def test_repeats_of_which_some_are_known():
    unknown = opset1.parameter([2], np.int64)
    repeats = opset1.concat([constant([3]), unknown], 0)  # OpenVINO finds bounds of all entries, or of none
    for data in (partial(2, 3), partial(6, 8, 10, 5)):
        shapes = [make(opset1.parameter(data), repeats).output(0).get_partial_shape() for make in TILES]
        assert shapes[0] == shapes[1]


def test_inputs_that_are_no_nodes(oracle):
    data = opset1.parameter([2, 3], np.float32)
    for repeats in ([2, 2], (2, 2), np.array([2, 2], np.int32), [np.int8(2), 2], [], [-1, 2]):
        model = ov.Model([Tile(data, repeats), Tile(XX, repeats)], [data])
        for result in run_all(model, [XX]):
            np.testing.assert_array_equal(result, oracle(XX, np.maximum(repeats, 0).astype(int)), strict=True)


def parameter(shape, kind="f32"):
    return opset1.parameter(shape, getattr(ov.Type, kind))


@pytest.mark.parametrize(("kind", "message", "inputs"), [
    (ValueError, "1 inputs, expected data and repeats", [parameter([2])]),
    (TypeError, "repeats of element type f32", [parameter([2]), parameter([2])]),
    (TypeError, "repeats of element type boolean", [parameter([2]), parameter([1], "boolean")]),
    (TypeError, "data of element type i4, expected", [parameter([2], "i4"), parameter([1], "i64")]),
    (ValueError, "repeats_shape must have 1 entry, has 2", [parameter([2]), parameter([1, 1], "i64")]),
    (TypeError, "repeats must be a 1-D tensor or a list of ints, got str", [parameter([2]), "2"]),
    (ValueError, "repeats must fit int64, got .9223372036854775808,", [parameter([2]), [2**63]]),
    (ValueError, "repeats must fit int64, got .-9223372036854775809,", [parameter([2]), [-(2**63) - 1]]),
    (TypeError, "data has dtype object, which OpenVINO lacks", [np.zeros(3, object), [2]]),
    (TypeError, "data has dtype StringDType.., which OpenVINO lacks", [np.array(["a"], "T"), [2]]),
    (TypeError, "data is a masked array", [np.ma.ones(3), [2]]),
])  # fmt: skip
def test_errors_name_the_input(kind, message, inputs):
    with pytest.raises(kind, match=message):
        Tile(*inputs)


@pytest.mark.parametrize("given", ["model.xml", None, CORE.compile_model(model([2], [2]), "CPU")])
def test_only_a_model_can_be_changed(given):
    with pytest.raises(TypeError, match=f"^replace_tile: expected an openvino.Model, .*, got {type(given).__name__}$"):
        replace_tile(given)


def test_overflow_is_an_error():
    with pytest.raises(ValueError, match=r"axis 0 overflows int64: 1099511627776 \* 1099511627776"):
        model([2**40], [2**40])
    with pytest.raises(ValueError, match="must be within int64"):  # not read as negative
        model([2], [2**64 - 1], length_type=np.uint64)
    with pytest.raises(ValueError, match="repeats does not fit 64 bits"):
        evaluated(model([-1], 1, length_type=np.uint64), X, np.array([2**64 - 1], np.uint64))


def built_in_is_right(repeats):
    """The CPU plugin refuses empty repeats that are an input, crashes on some negative ones, such as (1,) by [-1], and
    gives wrong values for some tilings of three and more repeated axes: (2, 2, 2, 2) by [2, 2, 2]."""
    return len(repeats) > 0 and min(repeats) >= 0 and np.count_nonzero(repeats > 1) < 3


def requests(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        shape = tuple(map(int, rng.choice([0, 1, 1, 2, 2, 3, 4], rng.integers(0, 6))))
        repeats = rng.choice([-1, 0, 1, 1, 2, 2, 3], rng.integers(0, 6))
        # Values that fit every type: the plugin computes on 32 bits.
        dtype = NUMBERS[(7 * len(shape) + len(repeats)) % len(NUMBERS)]
        yield rng.integers(0, 100, shape).astype(dtype), repeats


@pytest.mark.parametrize("dynamic", [False, True])
def test_random_models_of_constant_repeats(oracle, dynamic):
    """In one model: compiling takes longer than running. The built-in operation too, where it is right."""
    inputs, results, expected = [], [], []
    for x, repeats in requests(dynamic, 85):
        data = opset1.parameter([-1] * x.ndim if dynamic else x.shape, x.dtype)
        inputs.append((data, x))
        for make in TILES if built_in_is_right(repeats) else (Tile,):
            results.append(make(data, constant(repeats)))
            expected.append(oracle(x, np.maximum(repeats, 0)))
        np.testing.assert_array_equal(dialect.tile(x, repeats), expected[-1], strict=True)
    model = ov.Model(results, [data for data, _ in inputs])
    got = run_all(model, [x for _, x in inputs])
    for result, want in zip(got, expected, strict=True):
        np.testing.assert_array_equal(result, want, strict=True)


@pytest.mark.parametrize(("shape", "repeats"), [
    *[((0, 3), (2, 2)), ((), ())],  # on these, without a plugin, the built-in operation crashes
    *[((1,), (-1,)), ((), (-1,))],  # on these the built-in operation crashes in the CPU plugin
    *[((3, 0), (2,)), ((2, 3), ()), ((2, 3), (-1, 2)), ((), (2, 3)), ((2, 2, 2, 2), (2, 2, 2))],
    *[((2, 2, 2, 2), (1, 2, 2, 2, 2)), ((2, 2, 2, 1), (2, 2, 2, 2, 2))],
])  # fmt: skip
def test_hard_inputs(oracle, shape, repeats):
    x = np.ones(shape, np.float32)
    expected = oracle(x, np.maximum(repeats, 0).astype(int))
    for dims in (shape, [-1] * len(shape)):
        np.testing.assert_array_equal(run(model(dims, repeats), x), expected, strict=True)
        inputs = x, np.array(repeats, np.int64)
        for compute in (run, evaluated):
            result = compute(model(dims, len(repeats)), *inputs)
            np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("kind", "boolean i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 bf16 f8e4m3 f8e5m2".split())
def test_bits_without_a_plugin(oracle, kind):
    """Random bytes: values beyond 32 bits, NaNs with their payloads. Of the last types NumPy has none."""
    kind = getattr(ov.Type, kind)
    for shape, repeats in (([2, 3], [2, 2]), ([-1, -1], [3, 1, 2])):
        data, output = ov.Tensor(kind, ov.Shape([2, 3])), ov.Tensor(kind, ov.Shape([0]))
        values = np.frombuffer(np.random.default_rng(1).bytes(data.byte_size), "u1").reshape(2, -1)
        data.data.view("u1")[...] = values % 2 if kind == ov.Type.boolean else values
        assert model(shape, repeats, kind).evaluate([output], [data])
        result, want = output.data, oracle(data.data, repeats)
        assert (result.dtype, result.shape, result.tobytes()) == (want.dtype, want.shape, want.tobytes())


EMPTY = [np.zeros(shape, "U3") for shape in [(), (1,), (0,), (2, 3), (2, 0)]]


@pytest.mark.parametrize("x", [np.array([["a", "", "longer than sixteen bytes, é"]]), *EMPTY])
def test_strings_also_without_a_byte(x):
    """If all are empty, one of OpenVINO's two properties divides by 0, or shows memory of others."""
    output = ov.Tensor(ov.Type.string, ov.Shape([0]))
    for repeats in ((2, 2), (0, 2)):
        want = np.tile(x, repeats)
        for dims in (list(x.shape), [-1] * x.ndim):
            tiling = model(dims, repeats, ov.Type.string)
            assert tiling.evaluate([output], [ov.Tensor(x)])
            for got in (run(tiling, x), run(ov.Model([Tile(x, repeats)], [])), output.str_data):
                assert got.shape == want.shape and got.tolist() == want.tolist()


def test_strings_of_any_bytes():
    data, output = (ov.Tensor(ov.Type.string, ov.Shape([n])) for n in (2, 0))
    data.bytes_data = np.array([b"\xff", b""])
    assert model([2], [2], ov.Type.string).evaluate([output], [data])
    assert output.bytes_data.tolist() == [b"\xff", b""] * 2


@pytest.mark.parametrize(
    "x", [np.array(["a", "é" * 50]), np.array([b"a", b"bc"])[::-1], np.array("q"), XX.astype(">f4").T]
)
def test_arrays_become_constants(oracle, x):
    result = run(ov.Model([Tile(x, [2, 3])], []))
    assert result.tolist() == oracle(x.astype("U") if x.dtype.kind == "S" else x, [2, 3]).tolist()


@pytest.mark.parametrize("length_type", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_types_of_repeats(oracle, length_type):
    repeats = np.array([2, 1], length_type)
    dynamic = model([-1, -1], 2, length_type=length_type)
    for result in (run(model([2, 3], repeats, length_type=length_type), XX), run(dynamic, XX, repeats)):
        np.testing.assert_array_equal(result, oracle(XX, (2, 1)))


def test_what_a_handler_raises_while_bounds_are_sought(monkeypatch):
    def fail(*_):
        raise RuntimeError("a handler's")

    data, repeats = opset1.parameter([3], np.float32), opset1.parameter([1], np.int64)
    monkeypatch.setattr(integration.opset1, "tile", fail)
    with pytest.raises(RuntimeError, match="a handler's"):
        Tile(data, repeats)


@pytest.mark.parametrize("repeats", [[2, 1], 2])
def test_saved_and_read(tmp_path, oracle, repeats):
    ov.save_model(model([-1, 3], repeats), tmp_path / "model.xml")
    core = ov.Core()
    with pytest.raises(RuntimeError, match="TilecoreTile"):
        core.read_model(tmp_path / "model.xml")
    core.add_extension(Tile)
    read = core.read_model(tmp_path / "model.xml")
    assert [type(node) for node in read.get_ordered_ops()].count(Tile) == 1
    for copy in (read, read.clone()):
        result = run(copy, XX, *([] if repeats == [2, 1] else [np.array([2, 1])]))
        np.testing.assert_array_equal(result, oracle(XX, (2, 1)), strict=True)


def test_a_model_whose_shapes_change():
    proto = model([2, 3], [2, 2])
    proto.reshape([5, (1, 4)])
    assert proto.output(0).get_partial_shape() == partial(10, (2, 8))


def kinds(model):
    """The numbers of built-in Tiles and of ours, without bodies."""
    names = [node.get_type_name() for node in model.get_ordered_ops()]
    return names.count("Tile"), names.count("TilecoreTile")


def written_and_read(proto, tmp_path):
    ov.save_model(proto, tmp_path / "model.xml", compress_to_fp16=False)
    return CORE.read_model(tmp_path / "model.xml")


def test_replaced_in_a_model_from_a_file(tmp_path, oracle):
    data, repeats = opset1.parameter([-1, 3], np.float32), opset1.parameter([3], np.int64)
    first = opset1.tile(data, [2, 1])
    first.set_friendly_name("first")
    first.output(0).set_names({"tiled"})
    second = opset1.tile(opset1.relu(first), repeats)
    second.output(0).set_names({"result"})
    read = written_and_read(ov.Model([second, first], [data, repeats]), tmp_path)
    assert kinds(read) == (2, 0)
    shapes = [output.get_partial_shape() for output in read.outputs]
    for node in read.get_ops():
        node.get_rt_info()["affinity"] = "CPU"  # HETERO wants all or none
    assert replace_tile(read) == 2
    gc.collect()  # only the model holds the new nodes
    assert kinds(read) == (0, 2) and [output.get_partial_shape() for output in read.outputs] == shapes
    sources = [read.output(name).get_node().input_value(0) for name in ("tiled", "result")]
    assert sources[0].get_node().get_friendly_name() == "first"
    assert [source.get_names() for source in sources] == [{"tiled"}, {"result"}]
    result = CORE.compile_model(read, "HETERO:CPU")([XX, counts := np.array([2, 1, 3])])
    tiled = oracle(XX, (2, 1))
    np.testing.assert_array_equal(result["tiled"], tiled, strict=True)
    np.testing.assert_array_equal(result["result"], oracle(tiled, counts), strict=True)
    assert replace_tile(read) == 0


def test_replaced_in_the_bodies_of_if(tmp_path, oracle):
    def body(count):
        data = opset1.parameter([-1, 3], np.float32)
        return ov.Model([opset1.tile(data, [count, 1])], [data]), data

    (then, x), (other, y) = body(2), body(3)
    yes, data = opset1.parameter([], np.bool_), opset1.parameter([-1, 3], np.float32)
    branch = ov.opset8.if_op(yes)
    branch.set_then_body(then)
    branch.set_else_body(other)
    branch.set_input(data.output(0), x, y)
    branch.set_output(then.results[0], other.results[0])
    read = written_and_read(ov.Model([branch.output(0)], [yes, data]), tmp_path)
    assert replace_tile(read) == 2
    (branch,) = [node for node in read.get_ordered_ops() if node.get_type_name() == "If"]
    assert kinds(branch.get_then_body()) == kinds(branch.get_else_body()) == (0, 1)
    for answer, count in ((True, 2), (False, 3)):
        result = run(read, np.array(answer), XX)
        np.testing.assert_array_equal(result, oracle(XX, (count, 1)), strict=True)


def test_replaced_in_the_body_of_a_loop(tmp_path, oracle):
    inner = opset1.parameter([-1, 3], np.float32)
    go = ov.opset8.constant(np.array(True))
    body = ov.Model([go, opset1.tile(inner, [2, 1])], [inner])
    loop = ov.opset8.loop(ov.opset8.constant(np.array(2)), ov.opset8.constant(np.array(True)))
    loop.set_function(body)
    data = opset1.parameter([-1, 3], np.float32)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(inner, data.output(0), body.results[1].output(0))
    result = loop.get_iter_value(body.results[1].output(0), -1)
    read = written_and_read(ov.Model([result], [data]), tmp_path)
    assert replace_tile(read) == 1
    np.testing.assert_array_equal(run(read, XX), oracle(XX, (4, 1)), strict=True)


@pytest.mark.parametrize(("repeats", "replaces"), [([2**31 - 1], True), ([1, 2**31], False), ([2**40], False)])
def test_constant_repeats_beyond_int32_are_refused(repeats, replaces):
    data = opset1.parameter([0], np.float32)
    proto = ov.Model([opset1.tile(opset1.tile(data, [2]), repeats)], [data])
    if replaces:
        assert replace_tile(proto) == 2
    else:
        with pytest.raises(ValueError, match=rf"^replace_tile: Tile_\d+ has repeats \[.*{repeats[-1]}\], but the CPU"):
            replace_tile(proto)
        assert kinds(proto) == (2, 0)


@pytest.mark.parametrize(("kind", "length_type"), [("i4", "i64"), ("u4", "i64"), ("f32", "i4"), ("f32", "u4")])
def test_less_than_8_bits_are_left_as_they_are(kind, length_type):
    good, data = opset1.parameter([2], np.float32), opset1.parameter([2], getattr(ov.Type, kind))
    repeats = opset1.parameter([1], getattr(ov.Type, length_type))
    proto = ov.Model([opset1.tile(good, [2]), opset1.tile(data, repeats)], [good, data, repeats])
    assert replace_tile(proto) == 1
    assert kinds(proto) == (1, 1)
