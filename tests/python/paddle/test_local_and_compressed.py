"""localsgd, adaptive_localsgd and dgc through paddle.distributed.fleet, with the optimizers of both APIs."""
import re
import sys

import numpy as np
import pytest

import documents
import paddle
from paddle import fluid
from paddle.distributed import fleet

TRAIN = '''
import sys
import numpy as np
import paddle
from paddle import fluid, static
from paddle.distributed import fleet

settings, optimizer, folder, first, last = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
paddle.enable_static()
x, y = static.data("x", [None, 16], "float32"), static.data("y", [None, 1], "int64")
h = static.nn.fc(x, 1100, activation="tanh")
loss = paddle.nn.functional.cross_entropy(static.nn.fc(h, 3), y)
strategy = fleet.DistributedStrategy()
for name, value in eval(settings).items():
    setattr(strategy, name, value)
fleet.init(is_collective=True, strategy=strategy)
fleet.distributed_optimizer(eval(optimizer), strategy).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
if first:
    fluid.io.load_persistables(exe, folder, static.default_main_program())
rank, size = fleet.worker_index(), fleet.worker_num()
for step in range(first, last):
    rng = np.random.RandomState(step)
    image, label = rng.randn(8, 16).astype("float32"), rng.randint(0, 3, (8, 1))
    image += label
    part = slice(rank * 8 // size, (rank + 1) * 8 // size)
    value, = exe.run(feed={"x": image[part], "y": label[part]}, fetch_list=[loss])
    mean = fleet.util.all_reduce(float(value)) / size
    if rank == 0:
        print("step %d loss %.9g" % (step, mean), flush=True)
if folder != "none":
    fleet.save_persistables(exe, folder, static.default_main_program())
if rank == 0:
    print("applied", fleet._get_applied_meta_list(), flush=True)
'''

MOMENTUM = "paddle.optimizer.Momentum(0.005, 0.9)"
FLUID_MOMENTUM = "fluid.optimizer.Momentum(0.005, 0.9)"
LOCAL = {"localsgd": True, "localsgd_configs": {"k_steps": 4, "begin_step": 2}}
ADAPTIVE = {"adaptive_localsgd": True, "adaptive_localsgd_configs": {"init_k_steps": 3}}
DGC = {"dgc": True, "dgc_configs": {"rampup_begin_step": 2, "rampup_step": 4, "sparsity": [0.75, 0.99]}}


def train(tmp_path, settings, optimizer=MOMENTUM, workers=2, folder="none", first=0, last=10):
    (tmp_path / "train.py").write_text(TRAIN)
    command = ["fleetrun", f"--nproc_per_node={workers}", "train.py", repr(settings), optimizer, str(folder), str(first), str(last)]
    result = documents.run(command if workers > 1 else [sys.executable] + command[2:], tmp_path)
    assert result.code == 0, result.output
    return [float(v) for v in re.findall(r"step \d+ loss (\S+)", result.output)], result.output


@pytest.mark.parametrize("name, settings", [("localsgd", LOCAL), ("adaptive_localsgd", ADAPTIVE), ("dgc", DGC)])
def test_both_apis_learn_and_resume_with_the_same_losses(tmp_path, name, settings):
    whole, output = train(tmp_path, settings)
    assert f"'{name}'" in output and len(whole) == 10 and whole[-1] < whole[0]
    old, _ = train(tmp_path, settings, FLUID_MOMENTUM)
    assert old == whole
    first, _ = train(tmp_path, settings, folder=tmp_path / "saved", last=5)
    rest, _ = train(tmp_path, settings, folder=tmp_path / "saved", first=5)
    assert first + rest == whole


def test_localsgd_in_every_step_is_data_parallel(tmp_path):
    for optimizer in ("paddle.optimizer.SGD(0.02)", MOMENTUM):
        local, _ = train(tmp_path, {"localsgd": True}, optimizer)
        dense, _ = train(tmp_path, {}, optimizer)
        np.testing.assert_allclose(local, dense, rtol=1e-6)


def test_dgc_momentum_optimizer_is_the_strategy(tmp_path):
    by_strategy, _ = train(tmp_path, DGC)
    by_optimizer, output = train(tmp_path, {}, "fluid.optimizer.DGCMomentumOptimizer(0.005, 0.9, 2, 4, [0.75, 0.99])")
    assert by_optimizer == by_strategy and "'dgc'" in output
    both, output = train(tmp_path, {}, "fluid.contrib.mixed_precision.decorate("
                                       "fluid.optimizer.DGCMomentumOptimizer(0.005, 0.9, 2, 4, [0.75, 0.99]))")
    assert "'dgc'" in output and "'amp'" in output
    np.testing.assert_allclose(both, by_strategy, rtol=0.05)


# ---- one process ----
def test_alone_dgc_momentum_is_momentum():
    def program(optimizer):
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
            loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [None, 200], "float32"), 100))
            optimizer().minimize(loss)
        return str(main)
    assert program(lambda: fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 0)) == program(
        lambda: fluid.optimizer.Momentum(0.1, 0.9))


@pytest.mark.parametrize("call, error", [
    (lambda: fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 0, sparsity=[1.0]), "sparsity has the value 1.0"),
    (lambda: fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 0, sparsity=0.9), "sparsity must be a list"),
    (lambda: fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, -1), "rampup_begin_step"),
    (lambda: fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 0, 0), "rampup_step"),
    (lambda: fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, 0).added_to(_strategy(DGC)), "asked for twice"),
    (lambda: _strategy({"localsgd_configs": {"k_steps": 0}}), "k_steps"),
    (lambda: _strategy({"adaptive_localsgd_configs": {"init_k_steps": 0}}), "init_k_steps"),
    (lambda: _strategy({"localsgd_configs": {"begin_step": -1}}), "begin_step"),
])
def test_bad_values_are_named(call, error):
    with pytest.raises(Exception, match=re.escape(error)):
        call()


def _strategy(settings):
    strategy = fleet.DistributedStrategy()
    for name, value in settings.items():
        setattr(strategy, name, value)
    return strategy


@pytest.mark.parametrize("settings, optimizer, error", [
    (DGC, lambda: paddle.optimizer.SGD(0.1), "is updated by sgd"),
    ({**DGC, **LOCAL}, lambda: paddle.optimizer.Momentum(0.1), "'localsgd' and 'dgc' cannot be used together"),
    ({**DGC, "lars": True}, lambda: paddle.optimizer.Momentum(0.1), "'dgc' and 'lars' cannot be used together"),
    ({**LOCAL, "fp16_allreduce": True}, lambda: paddle.optimizer.Momentum(0.1), "no gradients travel"),
])
def test_one_worker_refuses_it_too(settings, optimizer, error):
    fleet.init(is_collective=True)
    loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [None, 4], "float32"), 2))
    with pytest.raises(ValueError, match=error):
        fleet.distributed_optimizer(optimizer(), _strategy(settings)).minimize(loss)


@pytest.mark.parametrize("settings, optimizer, error", [
    (DGC, "paddle.optimizer.SGD(0.1)", "is updated by sgd"),
    (DGC, "paddle.optimizer.Momentum(0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))", "global norm"),
    ({**DGC, **LOCAL}, MOMENTUM, "'localsgd' and 'dgc' cannot be used together"),
    ({**LOCAL, **ADAPTIVE}, MOMENTUM, "cannot be used together"),
])
def test_what_makes_no_sense_is_refused_before_the_first_step(tmp_path, settings, optimizer, error):
    (tmp_path / "train.py").write_text(TRAIN)
    result = documents.run(["fleetrun", "--nproc_per_node=2", "train.py", repr(settings), optimizer, "none", "0", "3"], tmp_path)
    assert result.code != 0 and error in result.output and "step 0" not in result.output, result.output
