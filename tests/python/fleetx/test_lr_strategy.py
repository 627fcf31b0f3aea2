import numpy as np
import pytest

import paddle
from fleetx.utils import linear_warmup_decay
from paddle import static


def test_up_and_down():
    weight = paddle.mean(static.nn.fc(static.data("x", [1, 1], "float32"), 1, bias_attr=False))
    rate = linear_warmup_decay(0.1, 4, 10)
    paddle.optimizer.SGD(rate).minimize(weight)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.ones((1, 1), "float32")}
    runs = [exe.run(feed=feed, fetch_list=[rate, weight]) for _ in range(12)]
    rates, weights = [float(r) for r, _ in runs], [float(w) for _, w in runs]
    assert rates == pytest.approx([0, 0.025, 0.05, 0.075, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0, 0], abs=1e-7)
    # The gradient is 1: each step changes the weight by the rate.
    assert -np.diff(weights) == pytest.approx(rates[:-1], abs=1e-6)


def test_too_long_a_warm_up():
    with pytest.raises(ValueError, match="warmup_steps is 10"):
        linear_warmup_decay(0.1, 10, 10)
