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
    for _ in range(1 if fleet.is_first_worker() else 20):
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
    """The second worker has sent half of what it had learned in five exchanges, the first one nothing."""
    (first, _), model = run(tmp_path, "geo")
    value, base = 1.0, 1.0
    row = 0.5
    for step in range(1, 21):
        value, row = value - 0.1 * (row + 1), row - 0.1 * value / 2  # w - lr * mean(row + x); a row is half of the batch
        if step % 4 == 0:
            base += (value - base) / 2
    w, saved = (float(re.search(rf"\n{word} (.*)", model)[1]) for word in ("w", "saved"))
    assert w == saved and abs(w - base) < 1e-3, model
    assert "kept [ True]" in first, "the worker goes on with its own"
