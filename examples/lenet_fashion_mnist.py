"""LeNet on Fashion-MNIST, the same program for one worker and for many:

    source python/env.sh
    python examples/lenet_fashion_mnist.py
    fleetrun --gpus=0,1 examples/lenet_fashion_mnist.py
"""
import argparse

import numpy as np
import paddle
import paddle.nn as nn
from paddle import static
from paddle.distributed import fleet


class LeNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2D(1, 20, 5), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(20, 50, 5), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Flatten())
        self.head = nn.Sequential(nn.Linear(50 * 4 * 4, 500), nn.ReLU(), nn.Linear(500, 10))

    def forward(self, x):
        return self.head(self.features(x))


def share(reader, index, count):
    """Every count-th sample, beginning with this worker's; all workers get the same number."""
    def samples():
        held = []
        for sample in reader():
            held.append(sample)
            if len(held) == count:
                yield held[index]
                held = []
    return samples


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=1)
    options.add_argument("--batch", type=int, default=64, help="images per step and worker")
    options.add_argument("--limit", type=int, default=12800, help="images of an epoch")
    options = options.parse_args()

    paddle.enable_static()
    image = static.data("image", [None, 1, 28, 28], "float32")
    label = static.data("label", [None, 1], "int64")
    logits = LeNet()(image)
    loss = nn.functional.cross_entropy(logits, label)
    accuracy = paddle.metric.accuracy(logits, label)
    test = static.default_main_program().clone(for_test=True)

    fleet.init(is_collective=True)
    fleet.distributed_optimizer(paddle.optimizer.Momentum(0.05, 0.9)).minimize(loss)

    train = share(paddle.reader.firstn(paddle.dataset.mnist.train(), options.limit), fleet.worker_index(),
                  fleet.worker_num())
    loader = paddle.io.DataLoader.from_generator(feed_list=[image, label], capacity=8)
    loader.set_sample_list_generator(paddle.batch(train, options.batch, drop_last=True))
    exe = static.Executor(paddle.CUDAPlace(fleet.local_rank()))
    exe.run(static.default_startup_program())
    for epoch in range(options.epochs):
        for step, data in enumerate(loader()):
            value, share_right = exe.run(feed=data, fetch_list=[loss, accuracy])
            if step % 20 == 0 and fleet.is_first_worker():
                print("epoch %d, step %d: loss %.4f, accuracy %.3f" % (epoch, step, value, share_right), flush=True)
        if fleet.is_first_worker():
            samples = list(paddle.reader.firstn(paddle.dataset.mnist.test(), 2000)())
            feed = {"image": np.stack([s[0] for s in samples]).reshape(-1, 1, 28, 28),
                    "label": np.array([[s[1]] for s in samples])}
            value, share_right = exe.run(test, feed=feed, fetch_list=[loss, accuracy])
            print("epoch %d: test loss %.4f, test accuracy %.3f" % (epoch, value, share_right), flush=True)


if __name__ == "__main__":
    main()
