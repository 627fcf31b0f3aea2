"""Wide & Deep on ml-100k: does somebody like a film? One process of a job, with servers or alone. The first worker prints
the AUC of the fifth of the ratings that is not trained on as a line of JSON. DATA is what bench/run ps-auc has written."""
import argparse
import json

import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

DIM, HIDDEN = 16, [64, 32]


def network(fields, ids):
    feed, label = static.data("ids", [None, fields], "int64"), static.data("label", [None, 1], "float32")
    x = paddle.reshape(look_up(feed, ids, DIM, "deep"), [-1, fields * DIM])
    for width in HIDDEN:
        x = static.nn.fc(x, width, activation="relu")
    wide = paddle.sum(paddle.reshape(look_up(feed, ids, 1, "wide"), [-1, fields]), axis=1, keepdim=True)
    score = static.nn.fc(x, 1) + wide
    return paddle.mean(paddle.nn.functional.binary_cross_entropy_with_logits(score, label)), score


def look_up(feed, ids, dim, name):
    start = paddle.nn.initializer.Uniform(-0.01, 0.01)
    return static.nn.embedding(feed, [ids, dim], is_sparse=True, param_attr=paddle.ParamAttr(name=name, initializer=start))


def auc(scores, labels):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = labels > 0.5
    count = positive.sum()
    return (ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(labels) - count))


def batches(data, options):
    """Of this worker. With sync and geo the workers share every batch, as one process would train it; with async each
    makes steps of its own."""
    workers, index = fleet.worker_num(), fleet.worker_index()
    share = 1 if options.mode == "async" else workers
    size = options.batch // share
    for number in range(options.epochs):
        order = np.random.RandomState(100 * options.seed + number).permutation(len(data["label"]))
        steps = len(order) // (size * workers)
        for step in range(steps):
            begin = (step * workers + index) * size
            part = order[begin:begin + size]
            yield {name: values[part] for name, values in data.items()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--mode", choices=["sync", "async", "geo"], default="sync")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.002)
    return parser.parse_args()


def main():
    options = parse()
    table = np.loadtxt(options.data, dtype="int64")
    train, test = ({"ids": part[:, 1:], "label": part[:, :1].astype("float32")} for part in split(table, options.seed))
    paddle.enable_static()
    paddle.seed(options.seed)
    fleet.init()
    loss, score = network(table.shape[1] - 1, int(table.max()) + 1)
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = options.mode != "sync"
    if options.mode == "geo":
        strategy.a_sync_configs = {"k_steps": 8}
    fleet.distributed_optimizer(paddle.optimizer.Adam(options.lr), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    test_program = static.default_main_program().clone(for_test=True)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    if fleet.server_num() > 0:
        fleet.init_worker()
    for feed in batches(train, options):
        value, = exe.run(feed=feed, fetch_list=[loss])
    if fleet.server_num() > 0:
        fleet.barrier_worker()
    if fleet.is_first_worker():
        scores, = exe.run(test_program, feed=test, fetch_list=[score])
        print(json.dumps({"auc": auc(scores.reshape(-1), test["label"].reshape(-1)), "best_s": 1,
                          "loss": float(value)}), flush=True)
    if fleet.server_num() > 0:
        fleet.barrier_worker()
        fleet.stop_worker()


def split(table, seed):
    """A random 80 % of the rows, and the rest."""
    order = np.random.RandomState(seed).permutation(len(table))
    return np.split(table[order], [len(table) * 4 // 5])


if __name__ == "__main__":
    main()
