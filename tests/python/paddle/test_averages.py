"""Averages of parameters, Lookahead, and what scripts touch inside optimizers."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

FEED = {"x": np.array([[1., 2]], "float32")}


def value(name):
    return static.global_scope().find_var(name).get_tensor().numpy()


@pytest.fixture
def loss():
    x = static.data("x", [None, 2])
    return paddle.mean(static.nn.fc(x, 1, weight_attr=paddle.ParamAttr("w", fluid.initializer.Constant(1.0)), bias_attr=False))


def started():
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe


def test_exponential_moving_average(loss):
    test = static.default_main_program().clone(for_test=True)
    fluid.optimizer.SGD(0.1).minimize(loss)
    ema = static.ExponentialMovingAverage(0.9)
    ema.update()
    exe, average = started(), 0.0
    for _ in range(4):
        exe.run(feed=FEED)
        average = 0.9 * average + 0.1 * value("w")
    trained = value("w")
    with ema.apply(exe):
        np.testing.assert_allclose(value("w"), average / (1 - 0.9 ** 4), rtol=1e-5)
        exe.run(test, feed=FEED)
    np.testing.assert_array_equal(value("w"), trained)
    with ema.apply(exe, need_restore=False):
        pass
    assert (value("w") != trained).any()
    ema.restore(exe)
    np.testing.assert_array_equal(value("w"), trained)
    types = [op.type for op in static.default_main_program().clone(for_test=True).global_block().ops]
    assert types == [op.type for op in test.global_block().ops]  # its ops are part of the update
    with pytest.raises(paddle.FleetXError, match="once"):
        ema.update()


def test_the_decay_begins_low_with_thres_steps(loss):
    fluid.optimizer.SGD(0.1).minimize(loss)
    ema = fluid.optimizer.ExponentialMovingAverage(0.999, thres_steps=fluid.layers.autoincreased_step_counter())
    ema.update()
    exe, average, left = started(), 0.0, 1.0
    for step in (1, 2, 3):
        exe.run(feed=FEED)
        decay = (1 + step) / (10 + step)
        average, left = decay * average + (1 - decay) * value("w"), left * decay
    with ema.apply(exe):
        np.testing.assert_allclose(value("w"), average / (1 - left), rtol=1e-5)


@pytest.mark.parametrize("least, most, steps, want", [(2, 3, 5, [2, 3, 4, 5]), (10, 10, 4, [1, 2, 3, 4])])
def test_model_average(loss, least, most, steps, want):
    fluid.optimizer.SGD(0.1).minimize(loss)
    average = fluid.optimizer.ModelAverage(1.0, least, most)
    with pytest.raises(paddle.FleetXError, match="no value yet"):
        with average.apply(None):
            pass
    exe, seen = started(), [None]
    for _ in range(steps):
        exe.run(feed=FEED)
        seen.append(value("w"))
    # Windows of `most` steps, then what came since.
    windows = [seen[i] for i in range(1, steps + 1)] if most > steps else None
    with average.apply(exe):
        if windows:
            np.testing.assert_allclose(value("w"), np.mean(windows, 0), rtol=1e-5)
        else:
            spans = [np.mean(seen[i:steps + 1], 0) for i in range(1, steps + 1)]
            assert any(np.allclose(value("w"), s, rtol=1e-5) for s in spans)
    np.testing.assert_array_equal(value("w"), seen[-1])


def test_lookahead(loss):
    fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=2).minimize(loss)
    exe = started()
    fast = slow = value("w")
    for step in range(1, 6):
        fast = fast - 0.1 * FEED["x"].T
        if step % 2 == 0:
            slow = fast = slow + 0.5 * (fast - slow)
        exe.run(feed=FEED)
        np.testing.assert_allclose(value("w"), fast, rtol=1e-5)
    with pytest.raises(ValueError, match="alpha"):
        paddle.incubate.LookAhead(fluid.optimizer.SGD(0.1), alpha=2)
    paddle.distributed.fleet.init(is_collective=True)
    with pytest.raises(TypeError, match="Lookahead"):
        paddle.distributed.fleet.distributed_optimizer(paddle.incubate.LookAhead(fluid.optimizer.SGD(0.1)))


# ---- inside optimizers ----
def test_the_learning_rate_before_minimize(loss):
    optimizer = fluid.optimizer.SGD(0.1)
    rate = optimizer._global_learning_rate()
    assert rate is optimizer._global_learning_rate(static.default_main_program())
    optimizer.minimize(loss)
    assert optimizer._global_learning_rate() is rate and optimizer._learning_rate_map[loss.program] is rate
    exe = started()
    got, = exe.run(feed=FEED, fetch_list=[rate])
    assert got == np.float32(0.1)
    optimizer.set_lr(0.5)
    before = value("w")
    exe.run(feed=FEED)
    np.testing.assert_allclose(before - value("w"), 0.5 * FEED["x"].T, rtol=1e-5)


def test_a_schedule_before_minimize(loss):
    schedule = paddle.optimizer.lr.StepDecay(0.4, 1, 0.5)
    optimizer = paddle.optimizer.SGD(schedule)
    rate = optimizer._global_learning_rate()
    optimizer.minimize(loss)
    assert len(loss.program.lr_schedules) == 1
    exe, seen = started(), []
    for _ in range(3):
        seen.append(float(exe.run(feed=FEED, fetch_list=[rate])[0]))
        schedule.step()
    np.testing.assert_allclose(seen, [0.4, 0.2, 0.1], rtol=1e-6)


def test_a_variable_put_into_the_map(loss):
    optimizer = fluid.optimizer.SGD(0.1)
    optimizer._learning_rate_map[static.default_main_program()] = fluid.layers.create_global_var([1], 0.25, "float32", True)
    optimizer.minimize(loss)
    exe = started()
    exe.run(feed=FEED)
    np.testing.assert_allclose(1 - value("w"), 0.25 * FEED["x"].T, rtol=1e-6)


def test_set_gradient_clip():
    x = static.data("x", [None, 2])
    names = ("a", "b")
    outs = [static.nn.fc(x, 1, weight_attr=paddle.ParamAttr(n, fluid.initializer.Constant(0.0)), bias_attr=False) for n in names]
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(0.5), param_list=["a"])
    fluid.optimizer.SGD(1.0).minimize(paddle.mean(outs[0] + outs[1]))
    started().run(feed=FEED)
    np.testing.assert_allclose(value("a").ravel(), [-0.5, -0.5])
    np.testing.assert_allclose(value("b").ravel(), [-1, -2])
    with pytest.raises(TypeError, match="GradientClipBy"):
        fluid.clip.set_gradient_clip(1.0)


def test_settings_of_collective_training_in_1x():
    from paddle.fluid.incubate.fleet.collective import CollectiveOptimizer, DistributedStrategy, fleet
    from paddle.fluid.incubate.fleet.base import role_maker
    fleet.init(role_maker.PaddleCloudRoleMaker(is_collective=True))
    with static.program_guard(static.Program(), static.Program()):  # fleet forgets this one
        other = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1))
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize(other)
    x = fluid.layers.data("x", [2])
    hidden = fluid.layers.fc(x, 3, act="relu")
    loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
    strategy = DistributedStrategy()
    strategy.forward_recompute, strategy.recompute_checkpoints = True, [hidden]
    strategy.use_amp, strategy.use_local_sgd, strategy.mode = False, False, "collective"
    strategy.exec_strategy = fluid.ExecutionStrategy()
    optimizer = CollectiveOptimizer(fluid.optimizer.SGD(0.1), strategy)
    optimizer.minimize(loss)
    assert fleet.main_program is fluid.default_main_program() and fleet._origin_program is fleet.main_program
    assert fleet.startup_program is fluid.default_startup_program()
    assert optimizer.user_defined_strategy.recompute
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(fleet.main_program, feed=FEED, fetch_list=[loss])
