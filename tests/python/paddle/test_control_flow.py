"""Choices inside programs."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


@pytest.fixture
def choose():
    """Runs the program with m = each value; returns the fetched numbers."""
    def choose(fetch, values):
        exe = static.Executor()
        exe.run(static.default_startup_program())
        return [np.asarray(exe.run(feed={"x": np.full((2, 3), v, "float32")}, fetch_list=[fetch])[0]).reshape(-1)[0]
                for v in values]
    return choose


@pytest.fixture
def m():
    return paddle.mean(static.data("x", [None, 3], "float32"))


def test_cond_returns_one_side(m, choose):
    x = static.default_main_program().global_block().var("x")
    out = static.nn.cond(m > 0.5, lambda: x * 2, lambda: x - 1)
    assert choose(out, [1, 0]) == [2, -1]


def test_cond_of_several_variables(m, choose):
    a, b = static.nn.cond(m > 0.5, lambda: (m, m * 10), lambda: (-m, m * 20))
    assert choose(a + b, [1, 0.25]) == [11, 4.75]


def test_cond_assigns_on_one_side_only(m, choose):
    kept = fluid.layers.create_global_var([1], 7.0, "float32", True)

    def keep(value):
        paddle.assign(value, kept)
    fluid.layers.cond(m > 0.5, lambda: fluid.layers.cond(m > 0.8, lambda: keep(m)), lambda: keep(m * 0 - 1))
    assert choose(kept, [0.6, 1, 0.6, 0]) == [7, 1, 1, -1]


@pytest.mark.parametrize("optimizer", [lambda: paddle.optimizer.SGD(0.1), lambda: fluid.optimizer.Adam(0.1),
                                       lambda: paddle.distributed.fleet.distributed_optimizer(paddle.optimizer.SGD(0.1))])
def test_a_side_does_not_train(m, optimizer):
    """All sides run, so a parameter would be updated whatever the condition says."""
    paddle.distributed.fleet.init(is_collective=True)
    loss = paddle.mean(static.nn.fc(static.default_main_program().global_block().var("x"), 1))

    def train():
        optimizer().minimize(loss)
        return loss
    with pytest.raises(NotImplementedError, match="minimize inside of a side of cond.*minimize what cond returns"):
        static.nn.cond(m > 0.5, train, lambda: loss)
    optimizer().minimize(static.nn.cond(m > 0.5, lambda: loss, lambda: loss * 2))


def test_case_takes_the_first_that_holds(m, choose):
    def number(n):
        return lambda: paddle.full([1], float(n))
    out = static.nn.case([(m < 0.1, number(1)), (m < 0.6, number(2))], default=number(3))
    last = static.nn.case([(m < 0.1, number(1)), (m < 0.6, number(2))])
    assert choose(out, [0, 0.5, 1]) == [1, 2, 3] and choose(last, [0, 0.5, 1]) == [1, 2, 2]


def test_switch_case(m, choose):
    i = paddle.cast(m, "int32")
    out = static.nn.switch_case(i, {1: lambda: m + 10, 2: lambda: m + 20}, default=lambda: m)
    listed = fluid.layers.switch_case(i, [lambda: m, lambda: m + 10])
    assert choose(out, [0, 1, 2, 3]) == [0, 11, 22, 3] and choose(listed, [0, 1, 5]) == [0, 11, 15]


def test_gradients_go_to_the_side_that_was_taken(m, choose):
    w = static.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
    out = static.nn.cond(m > 0.5, lambda: w * w, lambda: -w)
    assert choose(static.gradients(paddle.mean(out), w)[0], [1, 0]) == [6, -1]


def test_wrong_sides_are_refused(m):
    x = static.default_main_program().global_block().var("x")
    with pytest.raises(TypeError, match="one bool"):
        static.nn.cond(x > 0, lambda: x, lambda: x)
    with pytest.raises(ValueError, match=r"float32\[-1, 3\] and float32\[1\]"):
        static.nn.cond(m > 0, lambda: x, lambda: m)
    with pytest.raises(ValueError, match="same number"):
        static.nn.cond(m > 0, lambda: (x, x), lambda: x)


def test_if_else_chooses_by_rows(run):
    x, y = fluid.layers.data("x", [1]), fluid.layers.data("y", [2, 2])
    zero = fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0)
    choice = fluid.layers.IfElse(fluid.layers.less_than(x, zero))
    with choice.true_block():
        inside = choice.input(x)
        choice.output(inside * 2.0, choice.input(y) + 1.0)
    with choice.false_block():
        choice.output(choice.input(x), choice.input(y))
    small, large = choice()
    got = run({"x": np.array([[1.0], [-2.0]], "float32"), "y": np.zeros((2, 2, 2), "float32")}, [small, large])
    assert got[0].tolist() == [[1.0], [-4.0]] and got[1].tolist() == [[[0, 0], [0, 0]], [[1, 1], [1, 1]]]


def test_what_if_else_needs():
    x = fluid.layers.data("x", [1])
    with pytest.raises(TypeError, match="bool"):
        fluid.layers.IfElse(x)
    choice = fluid.layers.IfElse(fluid.layers.less_than(x, x))
    with pytest.raises(ValueError, match="inside of true_block"):
        choice.output(x)
    with choice.true_block():
        choice.output(x)
    with pytest.raises(ValueError, match="has 1 outputs, the false block 0"):
        choice()
