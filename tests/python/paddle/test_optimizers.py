"""Optimizers, schedules, decay and clipping against their formulas."""
import math

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static
from paddle.optimizer import lr

W0 = np.array([[0.5], [-1.0], [2.0]], "float32")
X = np.random.RandomState(0).randn(8, 3).astype("float32")
T = np.random.RandomState(1).randn(8, 1).astype("float32")


def gradient(w):
    return 2 * X.T @ (X @ w - T) / len(X)


def train(make, steps=3, each=None):
    """The weights after so many steps, with the gradient of a linear least-squares problem."""
    x, t = static.data("x", [None, 3], "float32"), static.data("t", [None, 1], "float32")
    y = static.nn.fc(x, 1, bias_attr=False, weight_attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Assign(W0)))
    loss = paddle.mean(paddle.square(y - t))
    optimizer = make()
    optimizer.minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for step in range(steps):
        exe.run(feed={"x": X, "t": T}, fetch_list=[loss])
        if each:
            each(optimizer, step)
    return np.array(static.global_scope().find_var("w").get_tensor())


def sgd(w, steps, rate, l2=0.0, l1=0.0, clip=lambda g: g):
    for step in range(steps):
        g = clip(gradient(w)) + l2 * w + l1 * np.sign(w)
        w = w - (rate(step) if callable(rate) else rate) * g
    return w


def test_sgd():
    np.testing.assert_allclose(train(lambda: paddle.optimizer.SGD(0.1)), sgd(W0, 3, 0.1), rtol=1e-4)


def test_weight_decay_as_number_l2_and_l1():
    want = sgd(W0, 3, 0.1, l2=0.2)
    np.testing.assert_allclose(train(lambda: paddle.optimizer.SGD(0.1, weight_decay=0.2)), want, rtol=1e-4)


def test_fluid_regularization():
    regularizer = fluid.regularizer.L1Decay(0.3)
    got = train(lambda: fluid.optimizer.SGD(learning_rate=0.1, regularization=regularizer))
    np.testing.assert_allclose(got, sgd(W0, 3, 0.1, l1=0.3), rtol=1e-4)


@pytest.mark.parametrize("clip, function", [
    (paddle.nn.ClipGradByValue(0.1), lambda g: g.clip(-0.1, 0.1)),
    (paddle.nn.ClipGradByNorm(0.5), lambda g: g * min(1, 0.5 / np.linalg.norm(g))),
    (paddle.nn.ClipGradByGlobalNorm(0.5), lambda g: g * min(1, 0.5 / np.linalg.norm(g)))], ids=["value", "norm", "global"])
def test_clipping(clip, function):
    got = train(lambda: paddle.optimizer.SGD(0.1, grad_clip=clip))
    np.testing.assert_allclose(got, sgd(W0, 3, 0.1, clip=function), rtol=1e-4)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(nesterov):
    w, v = W0, 0
    for _ in range(3):
        g = gradient(w)
        v = 0.9 * v + g
        w = w - 0.1 * (g + 0.9 * v if nesterov else v)
    np.testing.assert_allclose(train(lambda: paddle.optimizer.Momentum(0.1, 0.9, use_nesterov=nesterov)), w, rtol=1e-4)


def adam(decay=0.0, coupled=0.0):
    w, m, v = W0.astype("float64"), 0, 0
    for t in range(1, 4):
        w = w * (1 - 0.01 * decay)
        g = gradient(w) + coupled * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.01 * math.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t) * m / (np.sqrt(v) + 1e-8 * math.sqrt(1 - 0.999 ** t))
    return w


def test_adam():
    np.testing.assert_allclose(train(lambda: paddle.optimizer.Adam(0.01)), adam(), rtol=1e-4)


def test_adam_with_coupled_decay():
    np.testing.assert_allclose(train(lambda: paddle.optimizer.Adam(0.01, weight_decay=0.5)), adam(coupled=0.5), rtol=1e-4)


def test_adamw_decays_the_parameter():
    np.testing.assert_allclose(train(lambda: paddle.optimizer.AdamW(0.01, weight_decay=0.5)), adam(decay=0.5), rtol=1e-4)


def test_adamw_leaves_out_what_the_function_says():
    got = train(lambda: paddle.optimizer.AdamW(0.01, weight_decay=0.5, apply_decay_param_fun=lambda n: n != "w"))
    np.testing.assert_allclose(got, adam(), rtol=1e-4)


@pytest.mark.parametrize("make", [
    lambda: paddle.optimizer.Adagrad(0.1), lambda: paddle.optimizer.RMSProp(0.01), lambda: paddle.optimizer.Adadelta(0.1),
    lambda: paddle.optimizer.Lamb(0.01), lambda: fluid.optimizer.Ftrl(0.1), lambda: fluid.optimizer.LarsMomentum(0.1, 0.9),
    lambda: fluid.optimizer.AdamOptimizer(learning_rate=0.01), lambda: fluid.optimizer.Momentum(0.1, 0.9)])
def test_others_change_the_weights(make):
    got = train(make)
    assert np.isfinite(got).all() and not np.allclose(got, W0)


# ---- schedules ----
def test_scheduler_steps_by_hand():
    got = train(lambda: paddle.optimizer.SGD(lr.StepDecay(0.1, step_size=1, gamma=0.5)),
                each=lambda o, step: o._learning_rate.step())
    np.testing.assert_allclose(got, sgd(W0, 3, lambda s: 0.1 * 0.5 ** s), rtol=1e-4)


def test_schedule_in_the_program():
    got = train(lambda: fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 1, 0.5)))
    np.testing.assert_allclose(got, sgd(W0, 3, lambda s: 0.1 * 0.5 ** s), rtol=1e-4)


def test_piecewise_with_warmup_in_the_program():
    def make():
        rate = fluid.layers.piecewise_decay([4, 5], [0.1, 0.05, 0.01])
        return fluid.optimizer.SGD(fluid.layers.linear_lr_warmup(rate, 2, 0.0, 0.1))
    want = sgd(W0, 6, lambda s: 0.05 * s if s < 2 else 0.1 if s < 4 else 0.05 if s < 5 else 0.01)
    np.testing.assert_allclose(train(make, 6), want, rtol=1e-4)


def test_a_schedule_written_with_switch():
    def make():
        with static.default_main_program()._lr_schedule_guard():
            rate = fluid.layers.tensor.create_global_var([1], 0.0, "float32", True, name="scheduled")
            step = fluid.layers.learning_rate_scheduler._decay_step_counter()
            with fluid.layers.control_flow.Switch() as switch:
                with switch.case(step < 2.0):
                    fluid.layers.tensor.assign(0.1 * (step / 2.0), rate)
                with switch.case(step < 4.0):
                    fluid.layers.tensor.assign(np.array([0.1], "float32"), rate)
                with switch.default():
                    fluid.layers.tensor.assign(fluid.layers.polynomial_decay(0.1, 10, 0.0), rate)
        return fluid.optimizer.SGD(rate)
    want = sgd(W0, 6, lambda s: 0.05 * s if s < 2 else 0.1 if s < 4 else 0.1 * (1 - s / 10))
    np.testing.assert_allclose(train(make, 6), want, rtol=1e-4)


def test_set_lr():
    got = train(lambda: paddle.optimizer.SGD(0.1), each=lambda o, step: o.set_lr(0.2))
    np.testing.assert_allclose(got, sgd(W0, 3, lambda s: 0.1 if s == 0 else 0.2), rtol=1e-4)


@pytest.mark.parametrize("schedule, want", [
    (lr.ExponentialDecay(1.0, 0.9), lambda e: 0.9 ** e),
    (lr.NaturalExpDecay(1.0, 0.1), lambda e: math.exp(-0.1 * e)),
    (lr.InverseTimeDecay(1.0, 0.1), lambda e: 1 / (1 + 0.1 * e)),
    (lr.PiecewiseDecay([2, 4], [1.0, 0.5, 0.1]), lambda e: 1.0 if e < 2 else 0.5 if e < 4 else 0.1),
    (lr.PolynomialDecay(1.0, 4, 0.0), lambda e: 1 - min(e, 4) / 4),
    (lr.MultiStepDecay(1.0, [2, 4], 0.1), lambda e: 1.0 if e < 2 else 0.1 if e < 4 else 0.01),
    (lr.LambdaDecay(1.0, lambda e: 0.95 ** e), lambda e: 0.95 ** e),
    (lr.CosineAnnealingDecay(1.0, 10), lambda e: (1 + math.cos(math.pi * e / 10)) / 2),
    (lr.LinearWarmup(1.0, 3, 0.0, 1.0), lambda e: min(e, 3) / 3),
    (lr.NoamDecay(4, 3), lambda e: 0.5 * min(1 if e == 0 else e ** -0.5, 3 ** -1.5 * e))])
def test_schedules(schedule, want):
    for epoch in range(7):
        assert schedule() == pytest.approx(want(epoch), abs=1e-9), epoch
        schedule.step()


def test_reduce_on_plateau():
    schedule = lr.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    for metric in (1.0, 1.0, 1.0, 0.5):
        schedule.step(metric)
    assert schedule() == 0.5


def test_parameters_limits_what_is_trained():
    x = static.data("x", [None, 3], "float32")
    a = static.nn.fc(x, 3, bias_attr=False)
    loss = paddle.mean(static.nn.fc(a, 1, bias_attr=False))
    _, pairs = paddle.optimizer.SGD(0.1, parameters=["fc_1.w_0"]).minimize(loss)
    assert [(p.name, g.name) for p, g in pairs] == [("fc_1.w_0", "fc_1.w_0@GRAD")]
