"""The type stubs: a typical script has no errors and real types, where mypy is installed."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import numpy as np
    import paddle
    import paddle.distributed.fleet as fleet
    import paddle.fluid as fluid
    import paddle.nn as nn
    import paddle.nn.functional as F
    from paddle import static

    paddle.enable_static()
    fleet.init(is_collective=True)
    x = static.data(name="x", shape=[None, 3, 8, 8], dtype="float32")
    y = static.data("y", [None, 1], "int64")
    net = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
    logits = net(x) * 2 + paddle.concat([x, x], axis=1)[0]
    loss = paddle.mean(F.cross_entropy(logits, y))
    loss.stop_gradient = False
    rate = paddle.optimizer.lr.PiecewiseDecay([1, 2], [0.1, 0.01, 0.001])
    optimizer = paddle.optimizer.Momentum(rate, 0.9, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
    strategy = fleet.DistributedStrategy()
    strategy.recompute = True
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    loader = paddle.io.DataLoader.from_generator(feed_list=[x, y], capacity=4)
    loader.set_sample_list_generator(paddle.batch(paddle.dataset.mnist.train(), 4), places=[paddle.CPUPlace()])
    for feed in loader():
        value, = exe.run(static.default_main_program(), feed=feed, fetch_list=[loss, loss.name])
        print(value.mean(), fleet.worker_index() + 1, static.global_scope().find_var("w").get_tensor().numpy().shape)
    fluid.io.save_inference_model("model", ["x"], [logits], exe)
    reveal_type(loss)
    reveal_type(rate.get_lr())
    reveal_type(static.default_main_program().clone(for_test=True))
    exe.run(feed=3)
"""


def test_a_typical_script(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("SKIPPED: mypy is not installed")
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    packages = pathlib.Path(__file__).resolve().parents[3] / "python"
    got = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "script.py"], cwd=tmp_path,
                         env=dict(os.environ, MYPYPATH=str(packages)), capture_output=True, text=True)
    ours = [line for line in got.stdout.splitlines() if line.startswith("script.py")]
    assert [line.split(": ", 1)[1] for line in ours] == [
        'note: Revealed type is "paddle._graph.Variable"', 'note: Revealed type is "float"',
        'note: Revealed type is "paddle._graph.Program"', ours[-1].split(": ", 1)[1]], got.stdout
    assert 'Argument "feed" to "run" of "Executor" has incompatible type "int"' in ours[-1]
