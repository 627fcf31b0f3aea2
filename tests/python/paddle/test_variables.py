"""Operators of variables with numbers of another kind, truth, copies of programs, and shapes that another variable knows."""
import numpy as np
import pytest

import paddle
from paddle import fluid, static

INTEGERS = ("int32", "int64", "bool")
OPERATORS = {
    "x + 1.5": lambda x: x + 1.5, "1.5 + x": lambda x: 1.5 + x, "x - 1.5": lambda x: x - 1.5, "1.5 - x": lambda x: 1.5 - x,
    "x * 2.5": lambda x: x * 2.5, "2.5 * x": lambda x: 2.5 * x, "x / 2.5": lambda x: x / 2.5, "2.5 / x": lambda x: 2.5 / x,
    "x // 1.5": lambda x: x // 1.5, "7.5 // x": lambda x: 7.5 // x, "x % 2.5": lambda x: x % 2.5, "7.5 % x": lambda x: 7.5 % x,
    "x ** 2.5": lambda x: x ** 2.5, "2.5 ** x": lambda x: 2.5 ** x, "x + 1.0": lambda x: x + 1.0,
    "x + array": lambda x: x + np.array([0.5, 1.5, 2.5]),
}
COMPARISONS = {
    "x == 1.5": lambda x: x == 1.5, "x != 1.5": lambda x: x != 1.5, "x < 0.5": lambda x: x < 0.5,
    "x <= 1.5": lambda x: x <= 1.5, "x > 1.5": lambda x: x > 1.5, "x >= 0.5": lambda x: x >= 0.5, "0.5 < x": lambda x: 0.5 < x,
}


def values(dtype):
    return np.array([1, 1, 1] if dtype == "bool" else [1, 2, 3], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", OPERATORS)
def test_a_float_beside_integers_is_not_cut(name, dtype, run):
    x = static.data("x", [None], dtype)
    out = OPERATORS[name](x)
    got, = run({"x": values(dtype)}, [out])
    assert out.dtype == "float32" and got.dtype == np.float32
    np.testing.assert_allclose(got, OPERATORS[name](values(dtype).astype("float32")), rtol=1e-6)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_with_a_float_do_not_cut_it(name, dtype, run):
    x = static.data("x", [None], dtype)
    got, = run({"x": values(dtype)}, [COMPARISONS[name](x)])
    np.testing.assert_array_equal(got, COMPARISONS[name](values(dtype).astype("float32")))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_whole_numbers_stay_whole(dtype, run):
    x = static.data("x", [None], dtype)
    outs = [x ** 2, 2 ** x, x + 1, 5 - x, x * 3, x // 2, 7 // x, x % 2, 7 % x, -x]
    kind = "int64" if dtype == "bool" else dtype
    got = run({"x": values(dtype)}, outs)
    v = values(dtype).astype(kind)
    want = [v ** 2, 2 ** v, v + 1, 5 - v, v * 3, v // 2, 7 // v, v % 2, 7 % v, -v]
    for out, a, b in zip(outs, got, want):
        assert out.dtype == kind
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", [
    lambda x: x % (2 ** 61 - 1), lambda x: x == 2 ** 53 + 1, lambda x: x + (2 ** 53 + 1), lambda x: paddle.full([1], 2 ** 63 - 1, "int64"),
    lambda x: paddle.full_like(x, -2 ** 53 - 1), lambda x: paddle.to_tensor([1, 2 ** 60 + 1])])
def test_whole_numbers_that_a_constant_cannot_hold_are_refused(make):
    with pytest.raises(paddle.InvalidArgumentError, match=r"\d{16,} cannot be a constant: .*feed it as an int64 variable"):
        make(static.data("x", [None], "int64"))


def test_large_whole_numbers_that_it_can_hold_are_exact(run):
    x = static.data("x", [None], "int64")
    fetch = [x == 2 ** 60, paddle.full([1], -2 ** 62, "int64"), paddle.to_tensor([3, 2 ** 54])]
    out = run({"x": np.array([2 ** 60, 2 ** 60 + 1])}, fetch)
    assert [o.tolist() for o in out] == [[True, False], [-2 ** 62], [3, 2 ** 54]]


def test_functions_do_not_cut_numbers_either(run):
    x = static.data("x", [None], "int64")
    outs = [paddle.pow(x, 0.5), paddle.less_than(x, 1.5), paddle.where(x > 1, x, 0.5), paddle.add(x, 0.5)]
    got = run({"x": values("int64")}, outs)
    np.testing.assert_allclose(got[0], np.sqrt([1, 2, 3]), rtol=1e-6)
    np.testing.assert_array_equal(got[1], [True, False, False])
    np.testing.assert_allclose(got[2], [0.5, 2, 3])
    np.testing.assert_allclose(got[3], [1.5, 2.5, 3.5])


@pytest.mark.parametrize("dtype", ("int32", "int64"))
def test_scale_and_clip_of_integers_do_not_cut_fractions(dtype, run):
    x = static.data("x", [None], dtype)
    whole = [paddle.scale(x, 2.0, 1.0), paddle.clip(x, 2, 9), paddle.clip(x, max=2.0)]
    broken = [paddle.scale(x, 2.5), paddle.scale(x, 2.0, 0.5), fluid.layers.scale(x, 0.5), paddle.clip(x, 1.5, 2.5)]
    assert all(out.dtype == dtype for out in whole) and all(out.dtype == "float32" for out in broken)
    v = values(dtype)
    wanted = [2 * v + 1, v.clip(2, 9), v.clip(None, 2), 2.5 * v, 2 * v + 0.5, 0.5 * v, v.clip(1.5, 2.5)]
    for got, want in zip(run({"x": v}, whole + broken), wanted):
        np.testing.assert_allclose(got, want)


LEFT = {
    "float32 * x": lambda x: np.float32(2.5) * x, "float64 + x": lambda x: np.float64(2.5) + x,
    "int64 - x": lambda x: np.int64(3) - x, "float32 / x": lambda x: np.float32(1.5) / x, "array * x": lambda x: np.array([1.5, 2, 3]) * x,
    "array - x": lambda x: np.array([1, 2, 3]) - x, "float64 ** x": lambda x: np.float64(2) ** x,
    "float64 < x": lambda x: np.float64(1.5) < x, "0-d * x": lambda x: np.array(2.5) * x,
}


@pytest.mark.parametrize("dtype", ("int32", "int64", "float32"))
@pytest.mark.parametrize("name", LEFT)
def test_numpy_may_stand_on_the_left(name, dtype, run):
    x = static.data("x", [None], dtype)
    got, = run({"x": values(dtype)}, [LEFT[name](x)])
    np.testing.assert_allclose(got, LEFT[name](values(dtype)), rtol=1e-6)


def test_integers_are_divided_by_floats_as_they_are(run):
    x, y = static.data("x", [None], "int64"), static.data("y", [None], "float32")
    out = x / y
    got, = run({"x": values("int64"), "y": np.array([0.5, 1.5, 0.25], "float32")}, [out])
    assert out.dtype == "float32"
    np.testing.assert_allclose(got, [2, 4 / 3, 12], rtol=1e-6)


# ---- closeness ----
@pytest.mark.parametrize("equal_nan", [False, True])
def test_allclose_knows_nan(equal_nan, run):
    x, y = static.data("x", [4], "float32"), static.data("y", [4], "float32")
    a, b = np.array([1, np.nan, np.inf, 2], "float32"), np.array([1, np.nan, np.inf, 2.000001], "float32")
    close, each = run({"x": a, "y": b}, [paddle.allclose(x, y, equal_nan=equal_nan),
                                         paddle.isclose(x, y, equal_nan=equal_nan)])
    assert bool(close[0]) == equal_nan
    np.testing.assert_array_equal(each, np.isclose(a, b, equal_nan=equal_nan))


def test_nothing_is_close_to_an_infinity_but_itself(run):
    x, y = static.data("x", [None], "float32"), static.data("y", [None], "float32")
    a = np.array([1, np.inf, np.inf, -np.inf, np.nan], "float32")
    b = np.array([np.inf, 1, -np.inf, -np.inf, np.inf], "float32")
    for equal_nan in (False, True):
        each, = run({"x": a, "y": b}, [paddle.isclose(x, y, equal_nan=equal_nan)])
        np.testing.assert_array_equal(each, np.isclose(a, b, equal_nan=equal_nan))


# ---- truth ----
def test_a_comparison_is_neither_true_nor_false():
    x = static.data("x", [None, 3], "float32")
    fixed = static.data("fixed", [4, 3], "float32")
    for value in (x == 0, x < fixed, paddle.mean(x) > 0, paddle.cast(x, "bool")):
        with pytest.raises(TypeError, match="is None.*paddle.where.*cond.*fetch"):
            bool(value)
        with pytest.raises(TypeError, match="neither true nor false"):
            if value:
                pass
    assert x is not None and (x == None) is False and (x != None) is True  # noqa: E711


def test_a_variable_is_there():
    """`if mask:` of scripts of 1.x asks whether there is one."""
    x, ids = static.data("x", [None, 3], "float32"), static.data("ids", [4], "int64")
    unwritten = static.default_main_program().global_block().create_var(name="later")
    assert x and ids and unwritten and paddle.mean(x) and not (None and x)
    assert (x * 2 if x else ids) is not ids


def test_lists_find_variables():
    a, b, c = [static.data(n, [None, 3], "float32") for n in "abc"]
    assert b in [a, b] and c not in [a, b] and [a, b, c].index(c) == 2 and b in (a, b) and b in {a, b}
    some = [a, b, c]
    some.remove(b)
    assert len(some) == 2 and some[1] is c and [a, b] == [a, b] and [a, b] != [b, a] and {a: 1}[a] == 1


# ---- copies ----
def test_a_copy_for_testing_knows_sequences(run):
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    pooled = fluid.layers.sequence_pool(fluid.layers.embedding(words, [10, 4]), "sum")
    for copy in (static.default_main_program().clone(for_test=True), static.default_main_program().clone()):
        found = copy.global_block().var("words")
        assert found.lod_level == 1 and found.program is copy
        assert found.lengths is copy.global_block().var("words@LENGTHS")
        feeder = fluid.DataFeeder([found], paddle.CPUPlace(), copy)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        got, = exe.run(copy, feed=feeder.feed([([1, 2],), ([3],)]), fetch_list=[pooled.name])
        assert got.shape == (2, 4)
        with static.program_guard(copy):  # and can be built on
            assert fluid.layers.sequence_pool(found.astype("float32"), "max").shape == (-1, 1)


# ---- shapes ----
def test_an_unknown_batch_meets_a_known_one(run):
    x, y = static.data("x", [None, 32], "float32"), static.data("y", [128, 32], "float32")
    outs = [x + y, y * x, x < y, paddle.maximum(x, y)]
    assert all(o.shape == (128, 32) for o in outs)
    a, b = np.random.rand(128, 32).astype("float32"), np.random.rand(128, 32).astype("float32")
    got = run({"x": a, "y": b}, outs)
    for g, w in zip(got, [a + b, b * a, a < b, np.maximum(a, b)]):
        np.testing.assert_allclose(g, w)
    with pytest.raises(ValueError, match="broadcast"):
        run({"x": a[:5], "y": b}, outs)


def test_gradients_of_an_unknown_batch_beside_a_known_one(run):
    x, y = static.data("x", [None, 3], "float32"), static.data("y", [4, 3], "float32")
    for v in (x, y):
        v.stop_gradient = False
    dx, dy = static.gradients(paddle.sum(x * y), [x, y])
    a, b = np.random.rand(4, 3).astype("float32"), np.random.rand(4, 3).astype("float32")
    got = run({"x": a, "y": b}, [dx, dy])
    np.testing.assert_allclose(got[0], b)
    np.testing.assert_allclose(got[1], a)


def test_reshape_by_the_length_of_another_variable(run):
    x, other = static.data("x", [None, 40], "float32"), static.data("other", [None, 7], "float32")
    x.stop_gradient = False
    batch = paddle.shape(other)[0]
    out = paddle.reshape(x, (batch, -1, 20))
    assert out.shape == (-1, -1, 20)
    gradient, = static.gradients(paddle.sum(out * out), [x])
    for rows, batch in ((6, 3), (8, 2), (5, 5)):
        a = np.random.rand(rows, 40).astype("float32")
        got, d = run({"x": a, "other": np.zeros((batch, 7), "float32")}, [out, gradient])
        np.testing.assert_array_equal(got, a.reshape(batch, -1, 20))
        np.testing.assert_allclose(d, 2 * a)
    with pytest.raises(ValueError, match="reshape"):
        run({"x": a[:1], "other": np.zeros((3, 7), "float32")}, [out])


def test_reshape_to_the_whole_shape_of_another_variable(run):
    x, like = static.data("x", [None, 6], "float32"), static.data("like", [None, None, 2], "float32")
    out = paddle.reshape(x, paddle.shape(like))
    a = np.random.rand(4, 6).astype("float32")
    got, = run({"x": a, "like": np.zeros((6, 2, 2), "float32")}, [out])
    np.testing.assert_array_equal(got, a.reshape(6, 2, 2))


@pytest.mark.parametrize("padding", [0, 2, [1], [1, 2], "SAME"])
def test_conv1d_with_channels_last(padding, run, rng):
    first = static.data("first", [None, 3, 9], "float32")
    last = static.data("last", [None, 9, 3], "float32")
    weight = paddle.ParamAttr("w", paddle.nn.initializer.Assign(rng.randn(4, 3, 3).astype("float32")))
    bias = paddle.ParamAttr("b", paddle.nn.initializer.Constant(0.5))
    made = [paddle.nn.Conv1D(3, 4, 3, padding=padding, weight_attr=weight, bias_attr=bias, data_format=f)
            for f in ("NCL", "NLC")]
    outs = [made[0](first), made[1](last)]
    a = rng.randn(2, 3, 9).astype("float32")
    want, got = run({"first": a, "last": a.transpose(0, 2, 1)}, outs)
    np.testing.assert_allclose(got, want.transpose(0, 2, 1), rtol=1e-5, atol=1e-6)
    assert want.shape[2] == {"0": 7, "2": 11, "[1]": 9, "[1, 2]": 10, "SAME": 9}[str(padding)]
    with pytest.raises(ValueError, match="NCL.*NLC.*'NHWC'"):
        paddle.nn.Conv1D(3, 4, 3, data_format="NHWC")(first)


def test_a_constant_has_its_value_while_the_program_is_built():
    rates = paddle.linspace(0, 0.5, 6)
    assert [r.item() for r in rates] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert not rates[0] > 0.0 and rates[1] > 0.0 and float(rates[-1]) == 0.5 and int(paddle.to_tensor([3])) == 3
    assert rates[1:3].numpy().tolist() == pytest.approx([0.1, 0.2])
    with pytest.raises(TypeError, match="fetch it"):
        float(rates[1] * 2.0)
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(rates > rates)


def test_inside_a_clone_variables_of_its_origin_are_the_clone_s(rng):
    x, y = static.data("x", [None, 4], "float32"), static.data("y", [None, 1], "float32")
    main = static.default_main_program()

    def trained(name, rate):
        clone = main.clone()
        with static.program_guard(clone, static.default_startup_program()):
            h = fluid.layers.fc(x, 3, act="tanh", param_attr=name + "_w", bias_attr=name + "_b")
            loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(h, 1, param_attr=name + "_v"), y))
            assert h.program is clone and x.program is clone and (x * 2.0).program is clone
            schedule = fluid.layers.piecewise_decay([10], [rate, rate / 10])
            fluid.optimizer.Adam(schedule).minimize(loss, parameter_list=[name + "_w", name + "_v"])
        assert x.program is main
        return clone, loss

    programs = [trained("a", 0.05), trained("b", 0.1)]
    assert not main.global_block().ops
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": rng.randn(8, 4).astype("float32"), "y": rng.randn(8, 1).astype("float32")}
    for clone, loss in programs:
        values = [exe.run(clone, feed=feed, fetch_list=[loss])[0].item() for _ in range(5)]
        assert values[-1] < values[0]
