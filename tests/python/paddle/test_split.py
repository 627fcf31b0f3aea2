"""paddle.distributed.split: real workers that divide layers, saved and resumed with other degrees."""
import re
import sys

import numpy as np
import pytest

import documents
import paddle

TRAIN = '''
import sys
import numpy as np
import paddle
from paddle import fluid, static
from paddle.distributed import fleet, split

mp, folder, first, last = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
paddle.enable_static()
paddle.seed(3)
strategy = fleet.DistributedStrategy()
fleet.init(is_collective=True)
rank, size = fleet.worker_index(), fleet.worker_num()
if mp > 1:
    strategy.hybrid_configs = {"mp_degree": mp, "dp_degree": size // mp}
x, y = static.data("x", [None, 16], "float32"), static.data("y", [None, 1], "int64")
words = paddle.reshape(split(y, (4, 16), "embedding", num_partitions=mp), [-1, 16])
h = split(x + 0.1 * words, (16, 40), "linear", axis=1, num_partitions=mp, gather_out=False)
h = split(paddle.tanh(h), (40, 24), "linear", axis=0, num_partitions=mp)
h = split(paddle.nn.functional.relu(h), (24, 8), "linear", axis=1, num_partitions=mp, bias_attr=False)
loss = paddle.nn.functional.cross_entropy(static.nn.fc(h, 3), y)
clip = paddle.nn.ClipGradByGlobalNorm(1.0)
fleet.distributed_optimizer(paddle.optimizer.Adam(0.01, grad_clip=clip), strategy).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
if first:
    fluid.io.load_persistables(exe, folder, static.default_main_program())
place, parts = rank // mp, size // mp  # workers that divide layers are fed the same
def part_of(step):
    rng = np.random.RandomState(step)
    image, label = rng.randn(8, 16).astype("float32"), rng.randint(0, 3, (8, 1))
    part = slice(place * 8 // parts, (place + 1) * 8 // parts)
    return {"x": (image + label).astype("float32")[part], "y": label[part]}
for step in range(first, last):
    value, = exe.run(feed=part_of(step), fetch_list=[loss])
    mean = fleet.util.all_reduce(float(value)) / size
    if rank == 0:
        print("step %d loss %.9g" % (step, mean), flush=True)
if folder != "none":
    fleet.save_persistables(exe, folder, static.default_main_program())
'''


def train(tmp_path, mp, workers, folder="none", first=0, last=6):
    (tmp_path / "train.py").write_text(TRAIN)
    command = ["fleetrun", f"--nproc_per_node={workers}", "train.py", str(mp), str(folder), str(first), str(last)]
    result = documents.run(command if workers > 1 else [sys.executable] + command[2:], tmp_path)
    assert result.code == 0, result.output
    return [float(v) for v in re.findall(r"step \w+ loss (\S+)", result.output)]


def test_workers_that_divide_layers_learn_what_one_does(tmp_path):
    whole = train(tmp_path, 1, 1)
    np.testing.assert_allclose(train(tmp_path, 2, 2), whole, rtol=1e-6)
    np.testing.assert_allclose(train(tmp_path, 2, 4), whole, rtol=1e-6)  # beside data parallel


def test_what_some_have_saved_others_load(tmp_path):
    whole = train(tmp_path, 1, 1)
    for mp, other in ((2, 1), (1, 2)):
        folder = tmp_path / f"saved_{mp}"
        train(tmp_path, mp, mp, folder, last=3)
        np.testing.assert_allclose(train(tmp_path, other, other, folder, first=3), whole[3:], rtol=1e-5)


@pytest.mark.parametrize("arguments, error", [
    (dict(size=(12, 16), operation="conv"), "operation must be 'linear' or 'embedding', got 'conv'"),
    (dict(size=(12, 16), operation="linear", axis=2, num_partitions=2), "axis must be 0 (rows) or 1 (columns), got 2"),
    (dict(size=(12, 16), operation="linear", axis=1, num_partitions=3), "16 columns cannot be divided into 3"),
    (dict(size=(12, 16), operation="linear", axis=0, num_partitions=5), "12 rows cannot be divided into 5"),
    (dict(size=12, operation="linear"), "size must be two numbers"),
    (dict(size=(12, 16), operation="embedding", axis=1), "an embedding is divided by rows"),
])
def test_what_is_refused(arguments, error):
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        x = paddle.static.data("x", [None, 12], "float32")
        with pytest.raises(Exception, match=re.escape(error)):
            paddle.distributed.split(x, **arguments)


def test_partitions_and_degree_must_agree(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.replace('"mp_degree": mp, "dp_degree": size // mp',
                                                     '"mp_degree": 4, "dp_degree": 1'))
    result = documents.run(["fleetrun", "--nproc_per_node=4", "train.py", "2", "none", "0", "1"], tmp_path)
    assert result.code != 0
    assert "num_partitions is 2, but mp_degree is 4" in result.output


def test_its_program_can_be_planned(tmp_path):
    dumped = 'if rank == 0: open("main.txt", "w").write(str(static.default_main_program()))\nexe ='
    (tmp_path / "train.py").write_text(TRAIN.replace("exe =", dumped, 1))
    result = documents.run(["fleetrun", "--nproc_per_node=2", "train.py", "2", "none", "0", "0"], tmp_path)
    assert result.code == 0, result.output
    result = documents.run(["fleetx", "plan", "main.txt", "--batch", "8", "--mesh", "mp=2", "--rank", "1"], tmp_path)
    assert result.code == 0 and "wire: group mp of 2 ranks" in result.output, result.output
    result = documents.run(["fleetx", "plan", "main.txt", "--batch", "8", "--mesh", "mp=4"], tmp_path)
    assert result.code != 0 and "the program is for 2 ranks, the group 'mp' has 4" in result.output


LAYERS = '''
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet
from paddle.distributed.fleet import meta_parallel as mp

paddle.enable_static()
paddle.seed(3)
strategy = fleet.DistributedStrategy()
import os
strategy.hybrid_configs = {"mp_degree": int(os.environ.get("PADDLE_TRAINERS_NUM", 1))}
fleet.init(is_collective=True, strategy=strategy)
x, y = static.data("x", [None, 16], "float32"), static.data("y", [None, 1], "int64")
words = paddle.reshape(mp.VocabParallelEmbedding(8, 16)(y), [-1, 16])
h = mp.ColumnParallelLinear(16, 24, has_bias=True, gather_output=False)(x + words)
h = mp.RowParallelLinear(24, 16, input_is_parallel=True)(paddle.tanh(h))
logits = mp.ColumnParallelLinear(16, 8, gather_output=False)(h)
loss = paddle.mean(mp.ParallelCrossEntropy(ignore_index=5)(logits, y))
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(4):
    rng = np.random.RandomState(step)
    feed = {"x": rng.randn(6, 16).astype("float32"), "y": rng.randint(0, 8, (6, 1))}
    value, = exe.run(feed=feed, fetch_list=[loss])
    print("step %d loss %.9g" % (step, float(value.item())), flush=True)
'''


def test_layers_of_later_versions(tmp_path):
    (tmp_path / "train.py").write_text(LAYERS)
    losses = []
    for command in ([sys.executable], ["fleetrun", "--nproc_per_node=2"]):
        result = documents.run(command + ["train.py"], tmp_path)
        assert result.code == 0, result.output
        losses.append([float(v) for v in re.findall(r"step \w+ loss (\S+)", result.output)][:4])
    assert len(losses[0]) == 4
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-6)


def test_one_worker_does_not_save_parts_as_if_they_were_whole(tmp_path):
    (tmp_path / "train.py").write_text(LAYERS + 'static.save(static.default_main_program(), "saved/model")\n')
    result = documents.run(["fleetrun", "--nproc_per_node=2", "train.py"], tmp_path)
    assert result.code != 0 and "this worker has a part of it only" in result.output, result.output
    assert "fleet.save_persistables on all workers" in result.output
    assert not (tmp_path / "saved").exists()


def test_layers_of_later_versions_refuse_what_they_do_not_have():
    from paddle.distributed.fleet import meta_parallel
    with pytest.raises(Exception, match="mp_group"):
        meta_parallel.ParallelCrossEntropy(mp_group=object())
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        x = paddle.static.data("x", [None, 12], "float32")
        with pytest.raises(Exception, match="x has the width 12; with input_is_parallel=False it must be 16"):
            meta_parallel.RowParallelLinear(16, 8)(x)


PARTS = '''
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle import static
from paddle.distributed import fleet, split

paddle.enable_static()
strategy = fleet.DistributedStrategy()
strategy.tensor_parallel = True
strategy.tensor_parallel_configs = {"tensor_parallel_degree": 2}
fleet.init(is_collective=True)
rng, rank = np.random.RandomState(0), fleet.worker_index()
table, w, b, v = rng.randn(6, 4), rng.randn(4, 8), rng.randn(8), rng.randn(8, 4)
def attr(part):
    return paddle.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(part.astype("float32")))
ids = static.data("ids", [None, 3], "int64")
half = slice(4 * rank, 4 * rank + 4)
h = split(ids, (6, 4), "embedding", num_partitions=2, weight_attr=attr(table[3 * rank:3 * rank + 3]))
h = split(h, (4, 8), "linear", axis=1, num_partitions=2, gather_out=False, weight_attr=attr(w[:, half]), bias_attr=attr(b[half]))
h = split(h, (8, 4), "linear", axis=0, num_partitions=2, weight_attr=attr(v[half]), bias_attr=False)
loss = paddle.mean(h)
fleet.distributed_optimizer(paddle.optimizer.SGD(0.0), strategy).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
fed = np.arange(6).reshape(2, 3)
value, = exe.run(feed={"ids": fed}, fetch_list=[loss])
print("equal", np.allclose(value, ((table[fed] @ w + b) @ v).mean(), rtol=1e-4), flush=True)
'''


def test_values_of_this_worker_s_part_and_the_degree_of_its_strategy(tmp_path):
    (tmp_path / "train.py").write_text(PARTS)
    result = documents.run(["fleetrun", "--nproc_per_node=2", "train.py"], tmp_path)
    assert result.code == 0 and "equal True" in result.output, result.output
