"""What was saved with some workers is resumed with others: the losses are those of a run that was not interrupted."""
import re
import sys

import numpy as np
import pytest

import documents

TRAIN = '''
import os
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

network, folder, first, last, way = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
paddle.enable_static()
x, y = static.data("x", [None, 6], "float32"), static.data("y", [None, 1], "float32")
h = static.nn.fc(x, 16, activation="tanh")
if network == "merge":
    ids = static.data("ids", [None, 3], "int64")
    h = h + paddle.sum(static.nn.embedding(ids, [90, 16], is_sparse=True), 1)
h = static.nn.batch_norm(h) if network == "sync_batch_norm" else paddle.nn.functional.dropout(h, 0.2)
loss = paddle.mean(paddle.square(static.nn.fc(h, 1) - y))
strategy = fleet.DistributedStrategy()
strategy.sync_batch_norm = network == "sync_batch_norm"
if network == "merge":
    strategy.gradient_merge, strategy.gradient_merge_configs = True, {"k_steps": 3}
fleet.init(is_collective=True, strategy=strategy)
fleet.distributed_optimizer(paddle.optimizer.Adam(0.01), strategy).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
if first > 0 and way == "persistables":
    paddle.fluid.io.load_persistables(exe, folder, static.default_main_program())
elif first > 0:
    static.load(static.default_main_program(), os.path.join(folder, "model"))
rank, size = fleet.worker_index(), fleet.worker_num()
for step in range(first, last):
    rng = np.random.RandomState(step)
    image, label = rng.randn(8, 6).astype("float32"), rng.randn(8, 1).astype("float32")
    part = slice(rank * 8 // size, (rank + 1) * 8 // size)
    feed = {"x": image[part], "y": label[part]}
    if network == "merge":
        feed["ids"] = rng.randint(0, 90, (8, 3))[part]
    value, = exe.run(feed=feed, fetch_list=[loss])
    mean = fleet.util.all_reduce(float(value)) / size
    if rank == 0:
        print("step %d loss %.9g" % (step, mean), flush=True)
if way == "persistables":
    fleet.save_persistables(exe, folder)
elif fleet.is_first_worker():
    static.save(static.default_main_program(), os.path.join(folder, "model"))
'''

STOP, END = 4, 12


def losses(tmp_path, workers, network, folder, first, last, way):
    result = documents.run(f"fleetrun --nproc_per_node={workers} train.py {network} {folder} {first} {last} {way}",
                           tmp_path)
    assert result.code == 0, result.output
    return {int(s): float(v) for s, v in re.findall(r"step (\d+) loss (\S+)", result.output)}


# STOP is in the middle of the three batches of a merged update: each worker has a sum of its own.
@pytest.mark.parametrize("network, way", [("dropout", "persistables"), ("sync_batch_norm", "static.save"),
                                          ("merge", "persistables")])
def test_all_nine_ways(tmp_path, network, way):
    (tmp_path / "train.py").write_text(TRAIN)
    whole = losses(tmp_path, 1, network, "whole", 0, END, way)
    assert len(whole) == END
    for before in (1, 2, 4):
        losses(tmp_path, before, network, f"saved{before}", 0, STOP, way)
        for after in (1, 2, 4):
            # What a resumed run saves goes elsewhere: the next one begins at the same place.
            documents.run(["cp", "-r", f"saved{before}", f"copy{before}{after}"], tmp_path)
            rest = losses(tmp_path, after, network, f"copy{before}{after}", STOP, END, way)
            assert sorted(rest) == list(range(STOP, END))
            np.testing.assert_allclose([rest[s] for s in range(STOP, END)], [whole[s] for s in range(STOP, END)],
                                       rtol=1e-6, err_msg=f"{before} -> {after} workers")


def test_state_that_every_start_makes_anew_is_not_saved(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    losses(tmp_path, 2, "dropout", "saved", 0, 1, "persistables")
    names = [p.name for p in (tmp_path / "saved").iterdir()]
    assert "@step@" in names and "@worker_weight@" not in names


def test_a_missing_variable_is_named(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    losses(tmp_path, 1, "dropout", "saved", 0, 1, "persistables")
    (tmp_path / "saved" / "@step@").unlink()
    result = documents.run([sys.executable, "train.py", "dropout", "saved", "1", "2", "persistables"], tmp_path)
    assert result.code != 0 and "@step@" in result.output


def test_one_worker_that_saves_alone_is_told_what_differs(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    result = documents.run("fleetrun --nproc_per_node=2 train.py merge saved 0 1 static.save", tmp_path)
    assert result.code == 0, result.output
    assert "differ between the workers (per_rank(dp, average))" in result.output, result.output
    assert "fleet.save_persistables, called by all workers" in result.output
    result = documents.run("fleetrun --nproc_per_node=2 train.py dropout saved 0 1 static.save", tmp_path)
    assert result.code == 0 and "differ between" not in result.output, result.output


STATISTICS = '''
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
x = static.data("x", [None, 4], "float32")
loss = paddle.mean(paddle.square(static.nn.batch_norm(static.nn.fc(x, 3), moving_mean_name="mean")))
strategy = fleet.DistributedStrategy()
strategy.localsgd, strategy.localsgd_configs = True, {"k_steps": 2}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
exe.run(static.default_startup_program())
if sys.argv[1] == "load":
    paddle.fluid.io.load_persistables(exe, "saved", static.default_main_program())
else:
    exe.run(feed={"x": np.random.RandomState(fleet.worker_index()).randn(8, 4).astype("float32")}, fetch_list=[loss])
    fleet.save_persistables(exe, "saved")
value = np.array(static.global_scope().find_var("mean").get_tensor())
print("of worker", fleet.worker_index(), value.tobytes().hex(), value.sum(), flush=True)
'''


def test_statistics_of_each_worker_where_all_save(tmp_path):
    """localsgd: all workers must call save_persistables, so that running statistics are those of each."""
    (tmp_path / "train.py").write_text(STATISTICS)

    def means(workers, what):
        result = documents.run(f"fleetrun --nproc_per_node={workers} --log_dir log{workers}{what} train.py {what}", tmp_path)
        assert result.code == 0, result.output
        logs = [(tmp_path / f"log{workers}{what}" / f"workerlog.{i}").read_text() for i in range(workers)]
        return [re.search(r"of worker \d (\S+) (\S+)", log).groups() for log in logs]

    saved = means(2, "save")
    assert saved[0] != saved[1] and means(2, "load") == saved
    np.testing.assert_allclose(float(means(1, "load")[0][1]), np.mean([float(s) for _, s in saved]), rtol=1e-4)
