"""Optimizers, schedules, decay and clipping against their formulas."""
import inspect
import math

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static
from paddle._native import native
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


# ---- every optimizer that is declared, in both APIs ----
def declared():
    for definition in native.optimizers():
        for module, api in ((paddle.optimizer, "python"), (fluid.optimizer, "fluid")):
            if definition[api]["name"]:
                yield pytest.param(getattr(module, definition[api]["name"]), id=f"{api}.{definition['kind']}")


every_optimizer = pytest.mark.parametrize("cls", list(declared()))


def made(cls, **arguments):
    """With a learning rate, and 0.9 for what else has no default."""
    parameters = list(inspect.signature(cls).parameters.values())
    required = {p.name: 0.9 for p in parameters if p.default is p.empty}
    return cls(**dict(required, learning_rate=0.05, **arguments))


@every_optimizer
def test_every_optimizer_changes_the_weights(cls):
    got = train(lambda: made(cls))
    assert np.isfinite(got).all() and not np.allclose(got, W0)


@every_optimizer
def test_every_optimizer_refuses_an_unknown_keyword(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) got an unexpected keyword argument 'no_such'"):
        made(cls, no_such=1)


@every_optimizer
def test_every_optimizer_applies_its_decay_to_the_gradient(cls):
    keyword = {"weight_decay", "regularization"} & inspect.signature(cls).parameters.keys()
    if cls.__name__ == "AdamW" or not keyword:
        pytest.skip("has a decay of its own")
    optimizer = made(cls, **{keyword.pop(): paddle.regularizer.L2Decay(0.25)})
    assert optimizer.options()["l2"] == 0.25
    train(lambda: optimizer, steps=0)
    updates = [op for op in str(static.default_main_program()).splitlines() if f"= {cls.kind}(" in op]
    assert updates and all("l2=[0.25]" in op for op in updates)


@every_optimizer
def test_every_argument_is_documented(cls):
    for name in inspect.signature(cls).parameters:
        assert f"    {name}: " in cls.__doc__


def test_signatures_are_those_of_the_original():
    assert str(inspect.signature(paddle.optimizer.Momentum)) == (
        "(learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None, grad_clip=None, "
        "name=None, *, multi_precision=False, use_multi_tensor=False, rescale_grad=1.0)")
    assert str(inspect.signature(fluid.optimizer.LarsMomentumOptimizer)) == (
        "(learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, parameter_list=None, regularization=None, "
        "grad_clip=None, name=None, exclude_from_weight_decay=None, epsilon=0.0, *, multi_precision=False, rescale_grad=1.0)")
    assert fluid.optimizer.AdamOptimizer is fluid.optimizer.Adam
    assert issubclass(fluid.optimizer.Adam, paddle.optimizer.Adam)
    assert not hasattr(fluid.optimizer, "AdamW")


def test_arguments_without_effect_are_accepted_with_a_reason():
    paddle.optimizer.Adam(lazy_mode=True, multi_precision=True, use_multi_tensor=True)
    assert "lazy_mode: accepted, without effect: a sparse gradient always" in paddle.optimizer.Adam.__doc__


def test_arguments_that_would_have_an_effect_are_refused():
    with pytest.raises(native.UnsupportedError, match="Momentum: rescale_grad can only be 1.0, got 0.5: scale the loss"):
        paddle.optimizer.Momentum(rescale_grad=0.5)
    with pytest.raises(native.UnsupportedError, match="AdamW: lr_ratio can only be None"):
        paddle.optimizer.AdamW(lr_ratio=lambda p: 1.0)


def test_wrong_values_are_refused_when_the_optimizer_is_made():
    with pytest.raises(ValueError, match=r"adam: beta1 must be in \[0, 1\), got 1.5"):
        paddle.optimizer.Adam(beta1=1.5)
    with pytest.raises(TypeError, match="RMSProp: rho must be a number, not str"):
        paddle.optimizer.RMSProp(0.1, rho="large")
    with pytest.raises(native.UnsupportedError, match="Adam: beta2 must be a number, not a variable"):
        paddle.optimizer.Adam(beta2=static.data("b", [1], "float32"))
    with pytest.raises(TypeError, match="missing a required argument: 'momentum'"):
        fluid.optimizer.Momentum(0.1)


def test_lamb_leaves_out_what_the_function_says():
    """By the whole name: `w` is left out, `x_w` is not."""
    x = static.data("x", [None, 3], "float32")
    for name in ("w", "x_w"):
        x = static.nn.fc(x, 3, bias_attr=False, weight_attr=name)
    fluid.optimizer.Lamb(0.1, exclude_from_weight_decay_fn=lambda p: p.name == "w").minimize(paddle.mean(x))
    decays = {line.split("] = lamb([")[1].split("]")[0]: "with_decay=[1.0]" in line
              for line in str(static.default_main_program()).splitlines() if "= lamb(" in line}
    assert decays == {"w": False, "x_w": True}


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
