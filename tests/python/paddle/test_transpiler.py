"""fluid.DistributeTranspiler: jobs as scripts of 1.x set them up after minimize()."""
import re
import sys

import numpy as np
import pytest

import documents
import paddle
import paddle.fluid as fluid
from paddle import static

# Every worker has its part of the batch; the sum over all is what one worker has.
SCRIPT = '''
import os
import sys
import numpy as np
import paddle.fluid as fluid

x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [1])
constant = fluid.initializer.Constant(0.1)
out = fluid.layers.fc(fluid.layers.fc(x, 4, act="tanh", param_attr=fluid.ParamAttr("w0", constant)), 1,
                      param_attr=fluid.ParamAttr("w1", constant))
loss = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
mode, rank = sys.argv[1], int(os.getenv("PADDLE_TRAINER_ID", "0"))
workers = int(os.getenv("PADDLE_TRAINERS_NUM", "1"))
exe, main, startup = fluid.Executor(fluid.CPUPlace()), fluid.default_main_program(), fluid.default_startup_program()
config = fluid.DistributeTranspilerConfig()
if mode == "nccl2":
    config.mode = "nccl2"
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(rank, trainers=os.getenv("PADDLE_TRAINER_ENDPOINTS", ""), current_endpoint=os.getenv("PADDLE_CURRENT_ENDPOINT"),
                program=main, startup_program=startup)
elif mode == "pserver":
    config.split_method = fluid.transpiler.RoundRobin
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(rank, program=main, pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"], trainers=workers, sync_mode=True)
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        me = os.environ["POD_IP"] + ":" + os.environ["PADDLE_PORT"]
        served = t.get_pserver_program(me)
        exe.run(t.get_startup_program(me, served))
        exe.run(served)
        sys.exit(0)
    main = t.get_trainer_program()
exe.run(startup)
rng = np.random.RandomState(0)
for step in range(6):
    a = rng.randn(4, 3).astype("float32")
    b = a.sum(1, keepdims=True)
    part = slice(rank * 4 // workers, (rank + 1) * 4 // workers)
    value, = exe.run(main, feed={"x": a[part], "y": b[part]}, fetch_list=[loss])
w = np.array(fluid.global_scope().find_var("w1").get_tensor()).ravel()
exe.close()
print("W", rank, " ".join("%.6f" % v for v in w), flush=True)
'''


def weights(folder, *command):
    (folder / "train.py").write_text(SCRIPT)
    got = documents.run([*command], folder, timeout=120)
    assert got.code == 0, got.output
    line = re.search(r"^.*W 0 (.*)$", got.output, re.M)
    assert line, got.output
    return np.array(line.group(1).split(), float)


def test_a_job_computes_what_one_worker_does(tmp_path):
    one = weights(tmp_path, sys.executable, "train.py", "alone")
    collective = weights(tmp_path, "fleetrun", "--nproc_per_node=2", "train.py", "nccl2")
    servers = weights(tmp_path, "fleetrun", "--server_num=1", "--worker_num=2", "train.py", "pserver")
    np.testing.assert_allclose(collective, one, rtol=1e-4)
    np.testing.assert_allclose(servers, one, rtol=1e-4)


def test_one_worker_without_a_launcher():
    x = static.data("x", [None, 2])
    loss = paddle.mean(static.nn.fc(x, 1))
    optimizer = fluid.optimizer.SGD(fluid.layers.exponential_decay(0.1, 10, 0.5))
    optimizer.minimize(loss)
    config = fluid.DistributeTranspilerConfig()
    config.mode = "nccl2"
    fluid.DistributeTranspiler(config).transpile(0, trainers="127.0.0.1:6170", current_endpoint="127.0.0.1:6170")
    exe = static.Executor()
    exe.run(static.default_startup_program())
    losses = [float(exe.run(feed={"x": np.ones((2, 2), "float32")}, fetch_list=[loss])[0]) for _ in range(3)]
    assert losses[0] > losses[1] > losses[2]


def test_wrong_order_and_wrong_places():
    t = fluid.DistributeTranspiler()
    with pytest.raises(paddle.FleetXError, match="minimize"):
        t.transpile(0)
    loss = paddle.mean(static.nn.fc(static.data("x", [None, 2]), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    paddle.mean(loss)
    with pytest.raises(paddle.FleetXError, match="ops were added"):
        t.transpile(0)
    with static.program_guard(static.Program(), static.Program()):
        fluid.optimizer.SGD(0.1).minimize(paddle.mean(static.nn.fc(static.data("x", [None, 2]), 1)))
        t.transpile(0, pservers="127.0.0.1:1,127.0.0.1:2")
        with pytest.raises(paddle.FleetXError, match="127.0.0.1:3 is none of the servers"):
            t.get_pserver_program("127.0.0.1:3")
