"""Trains a network with a strategy, as one worker of a job; bench/run learning starts it by fleetrun. The first worker
prints a line of JSON: the share of test pictures that are right after each pass."""
import argparse
import json

import fleetx as X
import numpy as np
import paddle
import paddle.nn as nn
from paddle import static
from paddle.distributed import fleet


class Block(nn.Layer):
    """Two convolutions beside a shortcut, which halve the picture."""

    def __init__(self, channels, filters):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2D(channels, filters, 3, 2, 1, bias_attr=False), nn.BatchNorm2D(filters), nn.ReLU(),
                                  nn.Conv2D(filters, filters, 3, 1, 1, bias_attr=False), nn.BatchNorm2D(filters))
        self.shortcut = nn.Conv2D(channels, filters, 1, 2)

    def forward(self, x):
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def lenet():
    return nn.Sequential(nn.Conv2D(1, 20, 5), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(20, 50, 5), nn.ReLU(),
                         nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def resnet():
    return nn.Sequential(nn.Conv2D(1, 8, 3, 1, 1, bias_attr=False), nn.BatchNorm2D(8), nn.ReLU(), Block(8, 16),
                         Block(16, 32), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(32, 10))


class Clothes:
    """Fashion-MNIST and a network for it."""

    def __init__(self, network, options):
        image, label = static.data("image", [None, 1, 28, 28], "float32"), static.data("label", [None, 1], "int64")
        logits = network()(image)
        self.loss = nn.functional.cross_entropy(logits, label)
        self.accuracy = paddle.metric.accuracy(nn.functional.softmax(logits), label)
        self.test = static.default_main_program().clone(for_test=True)
        self.seed, self.batch = options.seed, options.batch
        self.pictures = arrays(paddle.dataset.mnist.train(), options.limit)

    def __len__(self):
        return len(self.pictures["label"]) // (self.batch * fleet.worker_num())

    def passes(self, number):
        """Feeds of this worker. All shuffle alike and take turns."""
        order = np.random.RandomState(1000 * self.seed + number).permutation(len(self.pictures["label"]))
        mine = order[fleet.worker_index()::fleet.worker_num()]
        for step in range(len(self)):
            part = mine[step * self.batch:(step + 1) * self.batch]
            yield {name: values[part] for name, values in self.pictures.items()}

    def tests(self):
        pictures = arrays(paddle.dataset.mnist.test(), None)
        for begin in range(0, len(pictures["label"]), 1000):
            yield {name: values[begin:begin + 1000] for name, values in pictures.items()}


def arrays(reader, limit):
    samples = list(reader() if limit is None else paddle.reader.firstn(reader, limit)())
    return {"image": np.stack([s[0] for s in samples]).reshape(-1, 1, 28, 28),
            "label": np.array([[s[1]] for s in samples], "int64")}


class Flowers:
    """Drawn flowers of eight kinds, and a narrow ResNet-50."""

    def __init__(self, options):
        folder = X.dataset.generated_flowers(8, options.limit or 4000, val=400, size=96)
        model = X.applications.Resnet50(class_dim=8, image_shape=[3, 80, 80], width=16)
        self.loss, self.accuracy = model.loss, model.target["acc1"]
        self.test = model.main_prog.clone(for_test=True)
        self.train = model.get_train_dataloader(folder, options.batch, min_area=0.5, num_threads=1)
        self.val = model.get_val_dataloader(folder, batch_size=50, num_threads=1)

    def __len__(self):
        return len(self.train)

    def passes(self, _number):
        return (data[0] if isinstance(data, (list, tuple)) else data for data in self.train)

    def tests(self):
        return (data[0] if isinstance(data, (list, tuple)) else data for data in self.val)


def optimizer_for(options, steps):
    rate = X.utils.linear_warmup_decay(options.lr, max(1, steps // 20), steps)
    return paddle.optimizer.Adam(rate) if options.optimizer == "adam" else paddle.optimizer.Momentum(rate, 0.9)


def strategy_for(options, steps):
    strategy = fleet.DistributedStrategy()
    for name, value in json.loads(options.strategy).items():
        setattr(strategy, name, value)
    if strategy.dgc:  # after a warm-up with whole gradients
        strategy.dgc_configs = {"rampup_begin_step": steps // 10, "rampup_step": max(1, steps // 5),
                                "sparsity": [0.75, 0.9375, 0.984375, 0.996, 0.999]}
    return strategy


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=["lenet", "resnet", "flowers"], required=True)
    parser.add_argument("--strategy", default="{}", help="fields of DistributedStrategy, as JSON")
    parser.add_argument("--optimizer", choices=["momentum", "adam"], default="momentum")
    parser.add_argument("--lr", type=float, required=True, help="highest rate")
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True, help="pictures of a worker and step")
    parser.add_argument("--limit", type=int, help="pictures to train on")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse()
    paddle.enable_static()
    paddle.seed(options.seed)
    fleet.init(is_collective=True)
    job = Flowers(options) if options.network == "flowers" else Clothes(globals()[options.network], options)
    steps = options.epochs * len(job)
    fleet.distributed_optimizer(optimizer_for(options, steps), strategy_for(options, steps)).minimize(job.loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    curve = []
    for number in range(options.epochs):
        for feed in job.passes(number):
            loss, = exe.run(feed=feed, fetch_list=[job.loss])
        if fleet.is_first_worker():
            right = [(exe.run(job.test, feed=feed, fetch_list=[job.accuracy])[0], feed) for feed in job.tests()]
            sizes = [len(next(iter(feed.values()))) for _, feed in right]
            curve.append(sum(float(value) * size for (value, _), size in zip(right, sizes)) / sum(sizes))
    fleet.barrier_worker()
    if fleet.is_first_worker():
        print(json.dumps({"curve": curve, "accuracy": 100 * curve[-1], "best_s": 1, "loss": float(loss),
                          "applied": fleet._get_applied_meta_list()}), flush=True)


if __name__ == "__main__":
    main()
