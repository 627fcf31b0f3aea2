"""Parameters of workers and servers where workers have unequal numbers of batches: tests and saves are of one model."""
import re

import pytest

import documents

TRAIN = '''
import os
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet
mode = sys.argv[1]
paddle.enable_static()
fleet.init()
x, ids = static.data("x", [None, 4], "float32"), static.data("ids", [None, 1], "int64")
constant = paddle.nn.initializer.Constant
rows = static.nn.sparse_embedding(ids, [10, 4], param_attr=paddle.ParamAttr(name="table", initializer=constant(0.5)))
predict = static.nn.fc(paddle.reshape(rows, [-1, 4]) + x, 1, bias_attr=False,
                       weight_attr=paddle.ParamAttr(name="w", initializer=constant(1.0)))
loss = paddle.mean(predict)
strategy = fleet.DistributedStrategy()
strategy.a_sync = mode != "sync"
if mode == "geo":
    strategy.a_sync_configs = {"k_steps": 4}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    fleet.init_worker()
    fleet.barrier_worker()  # before there are values
    exe.run(static.default_startup_program())
    test = static.default_main_program().clone(for_test=True)
    feed = {"x": np.ones((2, 4), "float32"), "ids": np.array([[1], [2]], "int64")}
    steps = (0, 22) if mode == "geo" else (1, 20)
    for _ in range(steps[fleet.worker_index()]):
        exe.run(feed=feed, fetch_list=[loss])
    fleet.barrier_worker()
    print("predicts", exe.run(test, feed=feed, fetch_list=[predict])[0].ravel())
    fleet.barrier_worker()
    if fleet.is_first_worker():
        value = static.global_scope().find_var("w").get_tensor().numpy()[0]
        fleet.save_persistables(exe, "saved")
        fleet.save_inference_model(exe, "model", ["x", "ids"], [predict])
        assert not os.path.exists("model/.tables")
        print("kept", value == static.global_scope().find_var("w").get_tensor().numpy()[0])
    fleet.stop_worker()
'''
READ = '''
import numpy as np
import paddle
from paddle import static
paddle.enable_static()
exe = static.Executor(paddle.CPUPlace())
program, _, fetches = paddle.fluid.io.load_inference_model("model", exe)
feed = {"x": np.ones((2, 4), "float32"), "ids": np.array([[1], [2]], "int64")}
print("predicts", exe.run(program, feed=feed, fetch_list=fetches)[0].ravel())
print("w", float(static.global_scope().find_var("w").get_tensor().numpy()[0][0]))
paddle.fluid.io.load_vars(exe, "saved", program, vars=[program.global_block().var("w")])
print("saved", float(static.global_scope().find_var("w").get_tensor().numpy()[0][0]))
'''


def run(folder, mode):
    (folder / "train.py").write_text(TRAIN)
    (folder / "read.py").write_text(READ)
    result = documents.run(f"fleetrun --server_num=2 --worker_num=2 train.py {mode}", folder, environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0, result.output
    model = documents.run("python read.py", folder)
    assert model.code == 0, model.output
    return [(folder / "log" / f"workerlog.{i}").read_text() for i in range(2)], model.output


def predicted(text):
    return [float(v) for v in re.search(r"predicts \[(.*)\]", text)[1].split()]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_all_workers_have_the_servers_values_after_a_barrier(tmp_path, mode):
    (first, second), model = run(tmp_path, mode)
    assert predicted(first) == predicted(second) == predicted(model)


def test_geo_saves_parameters_and_rows_of_the_servers(tmp_path):
    """The second worker has sent half of what it had learned in five exchanges and at the barrier, the first one nothing."""
    (first, _), model = run(tmp_path, "geo")
    value, base = 1.0, 1.0
    row = 0.5
    for step in range(1, 23):
        value, row = value - 0.1 * (row + 1), row - 0.1 * value / 2  # w - lr * mean(row + x); a row is half of the batch
        if step % 4 == 0 or step == 22:
            base += (value - base) / 2
    w, saved = (float(re.search(rf"\n{word} (.*)", model)[1]) for word in ("w", "saved"))
    assert w == saved and abs(w - base) < 1e-3, model
    assert "kept [ True]" in first, "the worker goes on with its own"


LAST_STEPS = '''
import os
import sys
import time
import numpy as np
import paddle
from paddle import static
from paddle._native import native
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
x = static.data("x", [None, 4], "float32")
loss = paddle.mean(static.nn.fc(x, 1, bias_attr=False, weight_attr=paddle.ParamAttr(
    name="w", initializer=paddle.nn.initializer.Constant(1.0))))
strategy = fleet.DistributedStrategy()
strategy.a_sync, strategy.a_sync_configs = True, {"k_steps": 4}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
exe.run(static.default_startup_program())
fleet.init_worker()
trains = fleet.worker_index() == fleet.worker_num() - 1
for _ in range(6 if trains else 0):
    exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
if fleet.worker_index() == 1:
    fleet.stop_worker()
    open("stopped", "w").close()
    sys.exit()
while fleet.worker_num() == 2 and not os.path.exists("stopped"):
    time.sleep(0.05)
for _ in range(2):  # the second time there is nothing to share
    fleet.save_persistables(exe, "saved")
print("saved", float(native.load_tensors("saved/w")[0]["w"][0, 0]))
fleet.stop_worker()
'''


@pytest.mark.parametrize("workers", [1, 2])
def test_geo_workers_share_their_last_steps(tmp_path, workers):
    """Two of six steps come after the last exchange. One worker saves; of two, one stops before the other saves."""
    (tmp_path / "train.py").write_text(LAST_STEPS)
    result = documents.run(f"fleetrun --server_num=1 --worker_num={workers} train.py", tmp_path,
                           environment={"OMP_NUM_THREADS": "1"})
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert result.code == 0, result.output + log
    # Two workers: half of 0.4 at the exchange; then half of what was left of it, and of 0.2.
    assert abs(float(re.search(r"saved (.*)", log)[1]) - {1: 0.4, 2: 1 - 0.2 - 0.2}[workers]) < 1e-5, log
