"""Trains networks with strategies, one run after the other, as one worker of a job; bench/run learning starts it by
fleetrun. The first worker appends a line of JSON for each run to a file."""
import argparse
import json
import pathlib
import time

import fleetx as X
import numpy as np
import paddle
import paddle.nn as nn
from paddle import static
from paddle.distributed import fleet

HELD_OUT = 5000  # of the pictures to train on: rates are chosen by them
FLOWERS = {"kinds": 8, "train": 4000, "test": 1000, "size": 32}


class Block(nn.Layer):
    """Two convolutions beside a shortcut, which halve the picture."""

    def __init__(self, channels, filters):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(channels, filters, 3, 2, 1, bias_attr=False), nn.BatchNorm2D(filters), nn.ReLU(),
                                  nn.Conv2D(filters, filters, 3, 1, 1, bias_attr=False), nn.BatchNorm2D(filters))
        self.shortcut = nn.Conv2D(channels, filters, 1, 2)

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def lenet(_channels, kinds):
    """LeNet-5."""
    return nn.Sequential(nn.Conv2D(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, kinds))


def resnet(channels, kinds):
    """The hidden layer is large enough (512 x 64) for dgc to compress it."""
    return nn.Sequential(nn.Conv2D(channels, 8, 3, 2, 1, bias_attr=False), nn.BatchNorm2D(8), nn.ReLU(), Block(8, 16),
                         Block(16, 32), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, kinds))


NETWORKS = {"lenet": lenet, "resnet": resnet}


class Pictures:
    """Parts of a set: train, held_out and test, each {"image", "label"}."""

    def __init__(self, name):
        train, self.test = clothes() if name == "clothes" else flowers()
        held_out = min(HELD_OUT, len(train["label"]) // 8)
        self.train = {key: values[:-held_out] for key, values in train.items()}
        self.held_out = {key: values[-held_out:] for key, values in train.items()}
        self.kinds = int(self.test["label"].max()) + 1

    @property
    def shape(self):
        return self.test["image"].shape[1:]

    def passes(self, run, number):
        """Feeds of this worker in pass `number`. All shuffle alike and take turns."""
        order = np.random.RandomState(1000 * run["seed"] + number).permutation(self.count(run))
        mine = order[fleet.worker_index()::fleet.worker_num()]
        for step in range(self.steps(run)):
            part = mine[step * run["batch"]:(step + 1) * run["batch"]]
            yield {key: values[part] for key, values in self.train.items()}

    def count(self, run):
        return min(len(self.train["label"]), run["limit"] or len(self.train["label"]))

    def steps(self, run):
        """Of a pass."""
        return self.count(run) // (run["batch"] * fleet.worker_num())


def clothes():
    """Fashion-MNIST."""
    def arrays(reader):
        samples = list(reader())
        return {"image": np.stack([s[0] for s in samples]).reshape(-1, 1, 28, 28),
                "label": np.array([[s[1]] for s in samples], "int64")}
    return arrays(paddle.dataset.mnist.train()), arrays(paddle.dataset.mnist.test())


def flowers():
    """Drawn ones, decoded once."""
    o = FLOWERS
    folder = X.dataset.generated_flowers(o["kinds"], o["train"], val=o["test"], size=64)

    def arrays(name):
        loader = X.dataset.ImageLoader(f"{folder}/{name}", 100, ["image", "label"], [3, o["size"], o["size"]], train=False,
                                       shuffle=False, drop_last=False, classes=o["kinds"], num_threads=1)
        batches = [{key: values.copy() for key, values in batch[0].items()} for batch in loader]
        return {key: np.concatenate([b[key] for b in batches]) for key in ("image", "label")}
    return arrays("train.txt"), arrays("val.txt")


def optimizer_for(run, steps):
    rate = X.utils.linear_warmup_decay(run["lr"], max(1, steps // 20), steps)
    return paddle.optimizer.Adam(rate) if run["optimizer"] == "adam" else paddle.optimizer.Momentum(rate, 0.9)


def strategy_for(run, steps):
    strategy = fleet.DistributedStrategy()
    for name, value in run["strategy"].items():
        setattr(strategy, name, value)
    if strategy.dgc:  # after a warm-up with whole gradients
        strategy.dgc_configs = {"rampup_begin_step": steps // 10, "rampup_step": max(1, steps // 5),
                                "sparsity": [0.75, 0.9375, 0.984375, 0.996, 0.999]}
    return strategy


def share_right(exe, program, accuracy, pictures):
    total, size = 0.0, 1000
    for begin in range(0, len(pictures["label"]), size):
        feed = {key: values[begin:begin + size] for key, values in pictures.items()}
        total += float(exe.run(program, feed=feed, fetch_list=[accuracy])[0]) * len(feed["label"])
    return total / len(pictures["label"])


def train(run, pictures):
    """The line of the run, on the first worker."""
    begin = time.perf_counter()
    paddle.seed(run["seed"])
    image, label = static.data("image", [None, *pictures.shape], "float32"), static.data("label", [None, 1], "int64")
    logits = NETWORKS[run["network"]](pictures.shape[0], pictures.kinds)(image)
    loss = nn.functional.cross_entropy(logits, label)
    accuracy = paddle.metric.accuracy(nn.functional.softmax(logits), label)
    test = static.default_main_program().clone(for_test=True)
    steps = run["epochs"] * pictures.steps(run)
    fleet.distributed_optimizer(optimizer_for(run, steps), strategy_for(run, steps)).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    curve = []
    for number in range(run["epochs"]):
        for feed in pictures.passes(run, number):
            value, = exe.run(feed=feed, fetch_list=[loss])
        if fleet.is_first_worker():
            curve.append(share_right(exe, test, accuracy, pictures.held_out))
    right = share_right(exe, test, accuracy, pictures.test) if fleet.is_first_worker() else None
    fleet.barrier_worker()
    return right and {**run, "workers": fleet.worker_num(), "curve": curve, "accuracy": 100 * right, "loss": float(value),
                      "steps": steps, "applied": fleet._get_applied_meta_list(),
                      "seconds": round(time.perf_counter() - begin, 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=pathlib.Path, help="a JSON object for each: pictures, network, strategy (fields of "
                        "DistributedStrategy), optimizer, lr (the highest), epochs, batch (of a worker), limit, seed")
    parser.add_argument("results", type=pathlib.Path, help="lines are appended here")
    options = parser.parse_args()
    paddle.enable_static()
    fleet.init(is_collective=True)
    loaded = {}
    for run in json.loads(options.runs.read_text()):
        name = run["pictures"]
        loaded[name] = loaded.get(name) or Pictures(name)
        with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \
                paddle.utils.unique_name.guard():
            line = train(run, loaded[name])
        if line:
            with options.results.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
