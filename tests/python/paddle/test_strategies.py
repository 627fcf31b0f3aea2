"""Strategies as scripts ask for them: with both APIs of optimizers, in a job of two workers and by the classes of 1.x."""
import re
import sys

import numpy as np
import pytest

import documents
import paddle
from paddle import fluid, static
from paddle.distributed.fleet.optimizer import DistributedOptimizer

JOB = '''
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
rank = fleet.worker_index()


def train(name, optimizer, **settings):
    strategy = fleet.DistributedStrategy()
    for key, value in settings.items():
        setattr(strategy, key, value)
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \\
            paddle.utils.unique_name.guard():
        static.default_startup_program().random_seed = 3
        x, y = static.data("x", [None, 6], "float32"), static.data("y", [None, 1], "int64")
        h = static.nn.fc(x, 8, activation="tanh")
        loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(h, 3), y))
        fleet.distributed_optimizer(optimizer(), strategy)
        fleet.minimize(loss)
        exe = static.Executor()
        exe.run(static.default_startup_program())
        rng = np.random.RandomState(7)
        for step in range(6):
            image, label = rng.randn(8, 6).astype("float32"), rng.randint(0, 3, (8, 1))
            part = slice(rank * 4, rank * 4 + 4)
            value, = exe.run(feed={"x": image[part], "y": label[part]}, fetch_list=[loss])
        mean = fleet.util.all_reduce(float(value)) / 2
        final = fleet._final_strategy()
        on = [k for k in settings if not k.endswith("_configs") and getattr(final, k)]
        if rank == 0:
            print("%s|%.7f|%s|%s" % (name, mean, ",".join(sorted(fleet._get_applied_meta_list())), ",".join(on)), flush=True)


new, old = paddle.optimizer, fluid.optimizer
momentum = [lambda: new.Momentum(0.5, 0.9), lambda: old.MomentumOptimizer(0.5, 0.9)]
adam = [lambda: new.Adam(0.05), lambda: old.AdamOptimizer(0.05)]
lars = dict(lars=True, lars_configs={"lars_coeff": 0.1, "exclude_from_weight_decay": [".b_"]})
lamb = dict(lamb=True, lamb_configs={"lamb_weight_decay": 0.02, "exclude_from_weight_decay": [".b_0"]})
for i in (0, 1):
    train("plain%d" % i, momentum[i])
    train("lars%d" % i, momentum[i], **lars)
    train("lamb%d" % i, adam[i], **lamb)
    train("merge%d" % i, momentum[i], gradient_merge=True, gradient_merge_configs={"k_steps": 2, "avg": True})
    train("half%d" % i, momentum[i], fp16_allreduce=True)
    train("brain%d" % i, momentum[i], fp16_allreduce=True, fp16_allreduce_configs={"dtype": "bfloat16"})
    train("again%d" % i, momentum[i], recompute=True)
    train("all%d" % i, momentum[i], amp=True, recompute=True, gradient_merge=True,
          gradient_merge_configs={"k_steps": 2}, fp16_allreduce=True, **lars)
train("lars_itself", lambda: old.LarsMomentumOptimizer(0.5, 0.9, lars_coeff=0.1, exclude_from_weight_decay=[".b_"]))
train("lamb_itself", lambda: old.LambOptimizer(0.05, 0.02, epsilon=1e-8,
      exclude_from_weight_decay_fn=lambda p: p.name.endswith(".b_0")))
for name, optimizer, settings in (("lars over adam", adam[0], lars), ("lamb over sgd", lambda: new.SGD(0.1), lamb)):
    try:
        train(name, optimizer, **settings)
    except ValueError as error:
        print("%s: %s" % (name, error), flush=True)
'''


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strategies")
    (folder / "train.py").write_text(JOB)
    result = documents.run("fleetrun --gpus=0,1 train.py", folder)
    assert result.code == 0, result.output
    return result.output


def rows(output):
    return {r[0]: (float(r[1]), r[2].split(","), r[3]) for r in
            re.findall(r"(\w+)\|([\d.]+)\|([\w,]*)\|([\w,]*)", output)}


def test_both_apis_give_the_same(job):
    got = rows(job)
    for name in ("plain", "lars", "lamb", "merge", "half", "brain", "again", "all"):
        assert got[name + "0"] == got[name + "1"], job


def test_a_strategy_is_what_its_name_says(job):
    got = rows(job)
    for name in ("lars", "lamb"):
        assert got[name + "0"][0] == pytest.approx(got[name + "_itself"][0], rel=1e-5), job
        assert got[name + "0"][0] != got["plain0"][0]
    assert got["again0"][0] == got["plain0"][0], job
    assert got["half0"][0] == pytest.approx(got["plain0"][0], rel=5e-3), job
    assert got["brain0"][0] == pytest.approx(got["plain0"][0], rel=3e-2), job
    assert len({got[n][0] for n in ("plain0", "half0", "brain0", "merge0")}) == 4, job


def test_what_was_applied_is_told(job):
    got = rows(job)
    assert got["plain0"][1] == ["data_parallel"]
    assert got["all0"][1] == ["amp", "data_parallel", "fp16_allreduce", "gradient_merge", "lars", "recompute"], job
    assert got["all0"][2] == "amp,recompute,gradient_merge,fp16_allreduce,lars", job
    # As a table of worker 0, once per program.
    assert "strategies, in the order in which they were applied:" in job
    assert re.search(r"gradients\s+gradient_merge\s+avg=true, k_steps=2", job), job


def test_optimizers_that_do_not_fit_are_refused(job):
    assert re.search("lars over adam: .*lars gives momentum .*the optimizer is adam; use Momentum", job), job
    assert re.search("lamb over sgd: .*lamb gives adam .*the optimizer is sgd; use Adam", job), job


def losses(optimizer, batches, size=None):
    """Of a small network. `size` samples at a time."""
    with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \
            paddle.utils.unique_name.guard():
        static.default_startup_program().random_seed = 5
        x = static.data("x", [None, 6], "float32")
        h = fluid.layers.fc(x, 8, act="tanh")
        h2 = fluid.layers.fc(h, 8, act="tanh")
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(h2, 2)))
        made = optimizer()
        if hasattr(made, "_set_checkpoints"):
            made._set_checkpoints([h, h2.name])
        made.minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        return [float(exe.run(feed={"x": b}, fetch_list=[loss])[0]) for b in batches]


def test_gradient_merge_of_1_x(rng):
    batches = rng.randn(6, 4, 6).astype("float32")
    sgd = fluid.optimizer.SGD
    merged = losses(lambda: fluid.optimizer.GradientMergeOptimizer(sgd(0.5), k_steps=2, avg=True), batches)
    large = losses(lambda: sgd(0.5), batches.reshape(3, 8, 6))
    np.testing.assert_allclose(np.reshape(merged, (3, 2)).mean(1), large, rtol=1e-5)
    with pytest.raises(ValueError, match="k_steps"):
        fluid.optimizer.GradientMergeOptimizer(sgd(0.5), k_steps=0)


def test_recompute_of_1_x(rng):
    batches = rng.randn(4, 4, 6).astype("float32")
    plain = losses(lambda: fluid.optimizer.Adam(0.1), batches)
    assert losses(lambda: fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Adam(0.1)), batches) == plain
    with pytest.raises(TypeError, match="list"):
        fluid.optimizer.RecomputeOptimizer(fluid.optimizer.Adam(0.1))._set_checkpoints("h")


def test_optimizers_around_each_other_bring_all_their_strategies():
    """fleet takes them apart from the outside, whatever the order is."""
    def recompute(inner):
        return fluid.optimizer.RecomputeOptimizer(inner)

    def merge(inner):
        return fluid.optimizer.GradientMergeOptimizer(inner, k_steps=2)

    for given in (None, paddle.distributed.fleet.DistributedStrategy()):
        for outer, inner, names in ((static.amp.decorate, recompute, {"amp", "recompute"}),
                                    (recompute, static.amp.decorate, {"amp", "recompute"}),
                                    (merge, recompute, {"gradient_merge", "recompute"}),
                                    (lambda o: merge(static.amp.decorate(o)), recompute, {"amp", "gradient_merge", "recompute"})):
            optimizer = DistributedOptimizer(outer(inner(fluid.optimizer.Momentum(0.1, 0.9))), given)
            strategy = optimizer.user_defined_strategy
            assert {n for n in ("amp", "gradient_merge", "recompute") if getattr(strategy, n)} == names
            assert type(optimizer.inner_opt) is fluid.optimizer.Momentum
        assert given is None or not (given.amp or given.recompute or given.gradient_merge)
    around_dgc = DistributedOptimizer(recompute(static.amp.decorate(fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 5))))
    strategy = around_dgc.user_defined_strategy
    assert strategy.amp and strategy.dgc and strategy.recompute and strategy.dgc_configs["rampup_begin_step"] == 5
    inner = recompute(fluid.optimizer.SGD(0.1))
    outer = static.amp.decorate(inner, init_loss_scaling=8.0)
    inner._set_checkpoints(["h"])  # after it was wrapped
    strategy = DistributedOptimizer(outer).user_defined_strategy
    assert strategy.recompute_configs["checkpoints"] == ["h"] and strategy.amp_configs["init_loss_scaling"] == 8
    with pytest.raises(ValueError, match="recompute is asked for twice"):
        DistributedOptimizer(recompute(static.amp.decorate(inner)))


def test_local_sgd_of_1_x():
    from paddle.fluid.incubate.fleet.collective import DistributedStrategy
    for name, value in (("collective_mode", "local_sgd"), ("use_local_sgd", True)):
        strategy = DistributedStrategy()
        assert strategy.collective_mode is None and not strategy.localsgd
        setattr(strategy, name, value)
        assert strategy.localsgd and strategy.use_local_sgd and strategy.collective_mode == "local_sgd"
    with pytest.raises(ValueError, match="collective_mode.*local_sgd"):
        strategy.collective_mode = "sgd"


def test_strategies_need_minimize():
    for optimizer in (DistributedOptimizer(paddle.optimizer.SGD(0.1)), fluid.optimizer.GradientMergeOptimizer(fluid.optimizer.SGD(0.1))):
        for call, arguments in (("backward", 1), ("apply_gradients", 1), ("apply_optimize", 3)):
            with pytest.raises(NotImplementedError, match=f"{call}: .*call minimize"):
                getattr(optimizer, call)(*[None] * arguments)


def test_a_budget_needs_the_batch():
    strategy = paddle.distributed.fleet.DistributedStrategy()
    strategy.recompute, strategy.recompute_configs = True, {"budget_MB": 10}
    assert strategy.recompute_configs["budget_MB"] == 10 and "budget_MB" in str(strategy)
    with pytest.raises(ValueError, match="budget_MB"):
        strategy.recompute_configs = {"budget_MB": -1}
    with pytest.raises(ValueError, match="float16, bfloat16"):
        strategy.fp16_allreduce_configs = {"dtype": "float32"}


@pytest.mark.parametrize("twice", [False, True])
def test_gradients_of_a_batch_are_fetched_under_gradient_merge(twice):
    paddle.distributed.fleet.init(is_collective=True)

    def fetched(k_steps):
        strategy = paddle.distributed.fleet.DistributedStrategy()
        strategy.gradient_merge, strategy.gradient_merge_configs = True, {"k_steps": k_steps}
        with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \
                paddle.utils.unique_name.guard():
            w = paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.25))
            out = static.nn.fc(static.data("x", [None, 3]), 3, weight_attr=w, bias_attr=False)
            loss = paddle.mean(static.nn.fc(out, 3, weight_attr=w, bias_attr=False) if twice else out)
            DistributedOptimizer(paddle.optimizer.SGD(0.5), strategy).minimize(loss)
            exe = static.Executor()
            exe.run(static.default_startup_program())
            return [exe.run(feed={"x": np.full((2, 3), t, "float32")}, fetch_list=["w@GRAD"])[0] for t in (1, 2)]

    merged, plain = fetched(k_steps=4), fetched(k_steps=1)
    np.testing.assert_array_equal(merged[0], plain[0])
    np.testing.assert_array_equal(merged[1], 2 * plain[0])  # w has not changed


TWO_PROGRAMS = '''
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
shared = static.Program()


def program(width, startup, **settings):
    main, strategy = static.Program(), fleet.DistributedStrategy()
    for key, value in settings.items():
        setattr(strategy, key, value)
    with static.program_guard(main, startup):
        startup.random_seed = 3
        x = static.data("x", [None, 4], "float32")
        loss = paddle.mean(paddle.square(static.nn.fc(x, width)))
        fleet.distributed_optimizer(paddle.optimizer.Momentum(0.1), strategy).minimize(loss, startup)
    return main, loss


def losses(*settings, startups):
    both = [program(3 + i, startup, **s) for i, (s, startup) in enumerate(zip(settings, startups))]
    with static.scope_guard(static.Scope()):
        exe = static.Executor()
        for startup in dict.fromkeys(startups):
            exe.run(startup)
        rng = np.random.RandomState(fleet.worker_index())
        return [[float(exe.run(main, feed={"x": rng.randn(2, 4).astype("float32")}, fetch_list=[loss])[0])
                 for main, loss in both] for _ in range(6)]


for settings in ({}, {"amp": True}, {"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2}},
                 {"sharding": True, "sharding_configs": {"stage": 3}}):
    with paddle.utils.unique_name.guard():
        one = static.Program()
        together = losses(settings, settings, startups=[one, one])
    with paddle.utils.unique_name.guard():
        apart = losses(settings, settings, startups=[static.Program(), static.Program()])
    assert np.isfinite(together).all(), (settings, together)
    assert together == apart, (settings, together, apart)
    print("in turn", *settings, flush=True)

try:
    one = static.Program()
    losses({"amp": True}, {"amp": True, "amp_configs": {"init_loss_scaling": 8.0}}, startups=[one, one])
except ValueError as e:
    print(e)
'''


def test_two_programs_that_are_trained_in_turn(tmp_path):
    """As those of a generator and of what judges it: with one startup program or two, on one worker or several."""
    (tmp_path / "train.py").write_text(TWO_PROGRAMS)
    for command in ([sys.executable, "train.py"], ["fleetrun", "--nproc_per_node=2", "train.py"]):
        result = documents.run(command, tmp_path)
        assert result.code == 0, result.output
        assert re.findall("in turn(.*)", result.output) == [
            "", " amp", " gradient_merge gradient_merge_configs", " sharding sharding_configs"], result.output
        assert "'loss_scaling_0', which is to start as f32[1] of 8, is in the startup program already" in result.output


TURNS = '''
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
strategy = fleet.DistributedStrategy()
strategy.gradient_merge, strategy.gradient_merge_configs = True, {"k_steps": 2}
both, startup, exe = [], static.Program(), static.Executor()
for name in ("a", "b"):
    with static.program_guard(static.Program(), startup):
        loss = paddle.mean(paddle.square(static.nn.fc(static.data("x", [None, 4], "float32"), 3)))
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss, startup)
        both.append((static.default_main_program(), loss))
exe.run(startup)
x = {"x": np.ones((2, 4), "float32")}
steps = np.array([[float(exe.run(m, feed=x, fetch_list=[l])[0]) for m, l in both] for _ in range(6)])
print("changes", (np.diff(steps, axis=0) < 0).astype(int).tolist(), flush=True)
'''


def test_programs_that_merge_gradients_in_turn_count_their_own_batches(tmp_path):
    (tmp_path / "train.py").write_text(TURNS)
    result = documents.run([sys.executable, "train.py"], tmp_path)
    assert "changes [[0, 0], [1, 1], [0, 0], [1, 1], [0, 0]]" in result.output, result.output


def test_a_second_loss_beside_amp_is_refused_for_what_it_is():
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [None, 4], "float32")
        losses = [paddle.mean(paddle.square(static.nn.fc(x, 3))) for _ in range(2)]
        static.amp.decorate(paddle.optimizer.SGD(0.1)).minimize(losses[0])
        with pytest.raises(ValueError, match="already has a backward part .*minimize one loss, or add the losses up first; "
                                             ".* need a program each"):
            static.amp.decorate(paddle.optimizer.SGD(0.1)).minimize(losses[1])
