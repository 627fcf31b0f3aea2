"""Small networks learn."""
import numpy as np

import paddle
from paddle import static


def small_images(rng, n=32):
    label = rng.randint(0, 10, (n, 1)).astype("int64")
    patterns = np.random.RandomState(1).randn(10, 1, 28, 28)
    return (patterns[label[:, 0]] + rng.randn(n, 1, 28, 28)).astype("float32"), label


def test_convolutional_network_learns(rng):
    x = static.data("x", [None, 1, 28, 28], "float32")
    y = static.data("y", [None, 1], "int64")
    h = static.nn.conv2d(x, 8, 3, padding=1, act="relu")
    h = paddle.nn.functional.max_pool2d(h, 2)
    h = static.nn.batch_norm(h, act="relu")
    logits = static.nn.fc(h, 10)
    loss = paddle.nn.functional.cross_entropy(logits, y)
    accuracy = paddle.metric.accuracy(logits, y)
    paddle.optimizer.Momentum(0.1, 0.9, weight_decay=paddle.regularizer.L2Decay(1e-4)).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    losses = []
    for _ in range(30):
        image, label = small_images(rng)
        value, share = exe.run(feed={"x": image, "y": label}, fetch_list=[loss, accuracy.name])
        losses.append("%.5f" % value)
        assert value.shape == (1,) and share.shape == (1,)
    assert float(losses[-1]) < 0.1 < float(losses[0])
    assert [p.name for p in static.default_main_program().all_parameters()] == [
        "conv2d_0.w_0", "conv2d_0.b_0", "batch_norm_0.w_0", "batch_norm_0.b_0", "fc_0.w_0", "fc_0.b_0"]
