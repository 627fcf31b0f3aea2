"""One process of a job with many workers and servers, in Python; bench/ps_many.cc is the same in C++.

usage: many_job.py FOLDER STEPS. Notes in the folder when a worker has found its servers, and what each process used."""
import pathlib
import sys
import time

import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

ROWS, DIM, BATCH = 100001, 10, 16


def network():
    dense, ids = static.data("dense", [None, 13], "float32"), static.data("ids", [None, 26], "int64")
    label = static.data("label", [None, 1], "float32")
    rows = static.nn.embedding(ids, [ROWS, DIM], is_sparse=True)
    x = static.nn.fc(paddle.concat([paddle.reshape(rows, [-1, 26 * DIM]), dense], axis=1), 64, activation="relu")
    score = static.nn.fc(x, 1) + static.nn.fc(dense, 1)
    return paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(score, label))


def note(folder, name, value):
    path = pathlib.Path(folder, name)
    path.with_suffix(".new").write_text(str(value))
    path.with_suffix(".new").rename(path)


def memory_mib():
    """What this process adds to the memory in use."""
    lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def main():
    folder, steps = sys.argv[1], int(sys.argv[2])
    paddle.enable_static()
    fleet.init()
    loss = network()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.01), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        note(folder, f"server-{fleet.server_index()}", memory_mib())
        return
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    fleet.init_worker()
    rank = fleet.worker_index()
    note(folder, f"ready-{rank}", time.monotonic())
    random = np.random.RandomState(rank)
    for _ in range(steps):
        feed = {"dense": random.rand(BATCH, 13).astype("float32"), "ids": random.randint(0, ROWS, (BATCH, 26)),
                "label": random.randint(0, 2, (BATCH, 1)).astype("float32")}
        exe.run(feed=feed, fetch_list=[loss])
    note(folder, f"worker-{rank}", memory_mib())
    fleet.stop_worker()


if __name__ == "__main__":
    main()
