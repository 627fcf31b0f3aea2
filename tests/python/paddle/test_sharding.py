"""sharding through paddle.distributed.fleet: real workers, saved and resumed with other degrees."""
import re
import sys

import numpy as np
import pytest

import documents
import paddle
from paddle.distributed import fleet

TRAIN = '''
import sys
import numpy as np
import paddle
from paddle import fluid, static
from paddle.distributed import fleet

settings, folder, first, last = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
paddle.enable_static()
paddle.seed(3)
x, y = static.data("x", [None, 16], "float32"), static.data("y", [None, 1], "int64")
h = static.nn.fc(static.nn.fc(x, 40, activation="tanh"), 24, activation="relu")
loss = paddle.nn.functional.cross_entropy(static.nn.fc(h, 3), y)
strategy = fleet.DistributedStrategy()
for name, value in eval(settings).items():
    setattr(strategy, name, value)
fleet.init(is_collective=True, strategy=strategy)
clip = paddle.nn.ClipGradByGlobalNorm(1.0)
fleet.distributed_optimizer(paddle.optimizer.Adam(0.01, grad_clip=clip), strategy).minimize(loss)
test = static.default_main_program().clone(for_test=True)
exe = static.Executor()
exe.run(static.default_startup_program())
if first:
    fluid.io.load_persistables(exe, folder, static.default_main_program())
rank, size = fleet.worker_index(), fleet.worker_num()
def part_of(step):
    rng = np.random.RandomState(step)
    image, label = rng.randn(8, 16).astype("float32"), rng.randint(0, 3, (8, 1))
    part = slice(rank * 8 // size, (rank + 1) * 8 // size)
    return {"x": (image + label).astype("float32")[part], "y": label[part]}
for step in range(first, last):
    value, = exe.run(feed=part_of(step), fetch_list=[loss])
    mean = fleet.util.all_reduce(float(value)) / size
    if rank == 0:
        print("step %d loss %.9g" % (step, mean), flush=True)
value, = exe.run(test, feed=part_of(100), fetch_list=[loss.name])
mean = fleet.util.all_reduce(float(value)) / size
if folder != "none":
    fleet.save_persistables(exe, folder, static.default_main_program())
if rank == 0:
    print("step test loss %.9g" % mean, flush=True)
    print("applied", fleet._get_applied_meta_list(), flush=True)
'''


def sharding(stage, **configs):
    return {"sharding": True, "sharding_configs": {"stage": stage, **configs}}


def train(tmp_path, settings, workers, folder="none", first=0, last=6):
    (tmp_path / "train.py").write_text(TRAIN)
    command = ["fleetrun", f"--nproc_per_node={workers}", "train.py", repr(settings), str(folder), str(first), str(last)]
    result = documents.run(command if workers > 1 else [sys.executable] + command[2:], tmp_path)
    assert result.code == 0, result.output
    return [float(v) for v in re.findall(r"step \w+ loss (\S+)", result.output)], result.output


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_workers_that_divide_learn_what_others_do(tmp_path, stage):
    plain, _ = train(tmp_path, {}, 2)
    divided, output = train(tmp_path, sharding(stage, optimize_offload=stage == 1), 2)
    assert "'sharding'" in output and f"stage {stage}: " in output
    np.testing.assert_allclose(divided, plain, rtol=1e-6)


def test_what_four_have_saved_others_load(tmp_path):
    whole, _ = train(tmp_path, {}, 1)
    hybrid = {"sharding": True, "sharding_configs": {"stage": 3}, "hybrid_configs": {"sharding_degree": 2, "dp_degree": 2}}
    first, _ = train(tmp_path, hybrid, 4, tmp_path / "saved", last=3)
    np.testing.assert_allclose(first[:3], whole[:3], rtol=1e-5)
    for settings, workers in (({}, 1), (sharding(1), 2), (sharding(2, sharding_degree=2), 4)):
        rest, _ = train(tmp_path, settings, workers, tmp_path / "saved", first=3)
        np.testing.assert_allclose(rest, whole[3:], rtol=1e-4)
        first, _ = train(tmp_path, hybrid, 4, tmp_path / "saved", last=3)


@pytest.mark.parametrize("settings, error", [
    (sharding(4), "the stage is 4"),
    (sharding(1, sharding_degree=3), "3"),
    ({**sharding(2), "fp16_allreduce": True}, "fp16_allreduce"),
    ({**sharding(1), "localsgd": True}, "localsgd"),
])
def test_what_does_not_work_is_refused(tmp_path, settings, error):
    (tmp_path / "train.py").write_text(TRAIN)
    result = documents.run(["fleetrun", "--nproc_per_node=2", "train.py", repr(settings), "none", "0", "1"], tmp_path)
    assert result.code != 0 and error in result.output and "step 0" not in result.output


def test_one_worker_has_nothing_to_divide():
    paddle.enable_static()
    loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [None, 4], "float32"), 3))
    strategy = fleet.DistributedStrategy()
    strategy.sharding = True
    fleet.init(is_collective=True, strategy=strategy)
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.01), strategy).minimize(loss)
    assert fleet._get_applied_meta_list() == []
