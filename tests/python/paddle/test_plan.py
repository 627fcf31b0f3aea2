"""What is known before a job starts: fleetrun --plan, and strategy.auto."""
import pytest

import documents
import paddle
from paddle import static
from paddle.distributed import fleet

SCRIPT = '''
import numpy as np
import paddle
from paddle import static
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(is_collective=True)
x = static.data("x", [None, 16], "float32")
loss = paddle.mean(paddle.square(static.nn.fc(static.nn.fc(x, 64), 4)))
strategy = fleet.DistributedStrategy()
strategy.auto = AUTO
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
exe = static.Executor()
exe.run(static.default_startup_program())
for step in range(3):
    out, = exe.run(feed={"x": np.ones((8, 16), "float32")}, fetch_list=[loss])
    print("loss", float(out))
'''


def write(folder, auto):
    (folder / "train.py").write_text(SCRIPT.replace("AUTO", str(auto)))


@pytest.mark.parametrize("auto", [False, True])
def test_plan_starts_nothing(tmp_path, auto):
    write(tmp_path, auto)
    result = documents.run("fleetrun --plan --nnodes=4 --nproc_per_node=8 train.py", tmp_path)
    assert "job: 32 workers, dp 32; 4 hosts of 8 ranks" in result.output
    assert "exposed comm" in result.output and "loss" not in result.output


def test_plan_ends_a_script_that_catches_exceptions(tmp_path):
    write(tmp_path, False)
    script = (tmp_path / "train.py").read_text()
    head, loop = script.split("for step in range(3):\n")
    (tmp_path / "train.py").write_text(head + """
import atexit
atexit.register(print, "exit handlers are run")
for step in range(3):
    try:
""" + "".join("    " + line + "\n" for line in loop.splitlines()) + """    except Exception as e:
        print("caught", e)
    finally:
        print("step", step, "is left")
print("after the loop")
""")
    result = documents.run("fleetrun --plan --nnodes=4 --nproc_per_node=8 train.py", tmp_path)
    assert result.code == 0 and result.output.count("exposed comm") == 1, result.output
    assert "step 0 is left\nexit handlers are run" in result.output, result.output
    for text in ["caught", "after the loop", "step 1 is left", "loss"]:
        assert text not in result.output, result.output


def test_all_workers_take_one_choice(tmp_path):
    write(tmp_path, True)
    result = documents.run("fleetrun --nproc_per_node=2 train.py", tmp_path)
    assert result.output.count("loss") == 3
    assert "auto] chose " in result.output


def network():
    x = static.data("x", [None, 16], "float32")
    return paddle.mean(paddle.square(static.nn.fc(static.nn.fc(x, 64), 4)))


def test_auto_is_saved_and_loaded(tmp_path):
    fleet.init(is_collective=True)
    strategy = fleet.DistributedStrategy()
    strategy.auto = True
    strategy.auto_configs = {"allow": ["amp"], "save_to": str(tmp_path / "choice.prototxt")}
    optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy)
    optimizer.minimize(network())
    assert strategy.auto  # what the user has stays as it is
    loaded = fleet.DistributedStrategy()
    loaded.load_from_prototxt(str(tmp_path / "choice.prototxt"))
    assert not loaded.auto
    assert (tmp_path / "choice.prototxt").read_text() == optimizer.strategy_text


def test_auto_stands_alone():
    fleet.init(is_collective=True)
    strategy = fleet.DistributedStrategy()
    strategy.auto = strategy.recompute = True
    with pytest.raises(ValueError, match="recompute is set beside it"):
        fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(network())
