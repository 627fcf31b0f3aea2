"""The life of rows on parameter servers: statistics, expiry, saves of what has changed."""
import pytest

import documents

LIFE = '''
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet
paddle.enable_static()
fleet.init()
ids = static.data("ids", [None, 2], "int64")
y = static.data("y", [None, 1], "float32")
show = static.data("show", [None, 1], "int64")
click = static.data("click", [None, 1], "int64")
rows = static.nn.sparse_embedding(ids, [10, 2], param_attr=paddle.ParamAttr(
    name="table", initializer=paddle.nn.initializer.Constant(0.5)),
    entry=paddle.distributed.ShowClickEntry("show", "click", delete_threshold=1.0, delete_after_unseen_days=1))
loss = paddle.mean(paddle.square(paddle.sum(rows, axis=[1, 2]) - paddle.reshape(y, [-1])))
strategy = fleet.DistributedStrategy()
strategy.a_sync = False
fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), strategy).minimize(loss)
exe = static.Executor(paddle.CPUPlace())
def feed(*pairs):
    n = len(pairs)
    return {"ids": np.array([p[0] for p in pairs], "int64"), "y": np.zeros((n, 1), "float32"),
            "show": np.ones((n, 1), "int64"), "click": np.array([[p[1]] for p in pairs], "int64")}
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe.run(static.default_startup_program())
    fleet.init_worker()
    for _ in range(3):
        exe.run(feed=feed(((1, 2), 1), ((3, 10 ** 15), 0)), fetch_list=[loss])
    fleet.barrier_worker()
    if fleet.is_first_worker():
        print("dropped", fleet.shrink(), fleet.shrink(0.0), fleet.shrink(0.0), fleet.shrink(0.0))
    fleet.barrier_worker()
    fleet.stop_worker()
'''


@pytest.mark.parametrize("start", ["fleetrun --server_num=1 --worker_num=1", "fleetrun --server_num=2 --worker_num=2", "python"])
def test_rows_go_by_their_statistics(tmp_path, start):
    """Ids 1 and 2 are clicked, 3 and a far one are not: they go on the first day, the others when they are unseen for two."""
    (tmp_path / "train.py").write_text(LIFE)
    result = documents.run(f"{start} train.py", tmp_path, environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0, result.output
    output = result.output + "".join(p.read_text() for p in tmp_path.glob("log/workerlog.0"))
    assert "dropped 2 0 2 0" in output, output
