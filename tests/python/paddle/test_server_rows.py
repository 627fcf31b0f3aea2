"""The life of rows on parameter servers: statistics, expiry, saves of what has changed."""
import re

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
    fleet.init_server("")  # no folder
    fleet.run_server()
    fleet.stop_worker()  # some scripts end all processes so
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


MODES = '''
import sys
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet
what, load = sys.argv[1], (sys.argv[2:] or [None])[0]
paddle.enable_static()
paddle.seed(5)
fleet.init()
ids, y = static.data("ids", [None, 2], "int64"), static.data("y", [None, 1], "float32")
rows = static.nn.sparse_embedding(ids, [10, 4], param_attr=paddle.ParamAttr(name="table"))
loss = paddle.mean(paddle.square(static.nn.fc(paddle.reshape(rows, [-1, 8]), 1) - y))
strategy = fleet.DistributedStrategy()
strategy.a_sync = what == "geo"
if what == "geo":
    strategy.a_sync_configs = {"k_steps": 3}
fleet.distributed_optimizer(paddle.optimizer.Adam(0.05), strategy).minimize(loss)
test = static.default_main_program().clone(for_test=True)
exe = static.Executor(paddle.CPUPlace())


def batch(step, size=16):
    some = np.random.RandomState(step).randint(0, 40, (size, 2))
    return {"ids": some * 10 ** 12, "y": (some[:, :1] % 4 * 0.25).astype("float32")}


def check(word):
    print(word, "%.7f" % exe.run(test, feed=batch(99), fetch_list=[loss])[0], flush=True)


if fleet.is_server():
    fleet.init_server(load)
    fleet.run_server()
else:
    exe.run(static.default_startup_program())
    fleet.init_worker()
    rank = fleet.worker_index()
    check("first")
    steps = {"load": 0, "unequal": 5 + 7 * rank, "geo": 60}.get(what, 10)
    for number in range(1 if what != "unequal" else 2):
        for step in range(steps):
            exe.run(feed=batch(step + 100 * rank), fetch_list=[loss])
        total = fleet.util.all_reduce(float(steps))
    print("steps", total)
    if what == "save":
        fleet.save_persistables(exe, "saved", mode=2)
        exe.run(feed=batch(50, 2), fetch_list=[loss])
        fleet.save_persistables(exe, "saved", mode=1, sparse_text=True)
        exe.run(feed=batch(51, 2), fetch_list=[loss])
        fleet.save_persistables(exe, "saved", mode=1)
        try:
            fleet.save_persistables(exe, "elsewhere", mode=1)
        except Exception as e:
            print("refused", e)
    fleet.barrier_worker()
    check("last")
    fleet.stop_worker()
'''


def run_mode(folder, servers, workers, *arguments):
    (folder / "train.py").write_text(MODES)
    result = documents.run(f"fleetrun --server_num={servers} --worker_num={workers} train.py {' '.join(arguments)}", folder,
                           environment={"OMP_NUM_THREADS": "1"})
    assert result.code == 0, result.output
    return (folder / "log" / "workerlog.0").read_text()


def number(text, word):
    return float(re.search(rf"{word} (\d+\.\d+)", text)[1])


def test_base_and_delta_load_into_other_servers(tmp_path):
    saved = run_mode(tmp_path, 2, 1, "save")
    assert "refused" in saved and "mode=2" in saved, saved
    folder = tmp_path / "saved"
    assert sorted(p.suffix for p in folder.iterdir() if p.suffix in (".part", ".delta")) == [".delta"] * 2 + [".part"] * 2
    lines = [line for p in folder.glob("table_txt/*.txt") for line in p.read_text().splitlines()]
    assert len(lines) == len({line.split("\t")[0] for line in lines}) > 20
    assert all(len(line.split("\t")[1].split(",")) == 4 * 3 for line in lines), "value and two moments"
    assert number(run_mode(tmp_path, 3, 1, "load", "saved"), "first") == number(saved, "last")


def test_workers_with_unequal_numbers_of_batches_meet(tmp_path):
    text = run_mode(tmp_path, 1, 2, "unequal")
    assert number(text, "steps") == 17 and number(text, "last") < number(text, "first"), text


def test_geo_trains_tables_by_id(tmp_path):
    text = run_mode(tmp_path, 2, 2, "geo")
    assert number(text, "last") < 0.7 * number(text, "first"), text
