"""Profilers of 1.x and 2.x write FleetX's trace and table."""
import json

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import profiler, static


@pytest.fixture
def step():
    x = static.data("x", [None, 8])
    loss = paddle.mean(static.nn.fc(x, 4, activation="relu"))
    paddle.optimizer.SGD(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return lambda: exe.run(feed={"x": np.ones((4, 8), "float32")}, fetch_list=[loss])


def names_in(path):
    return [e["name"] for e in json.load(open(path))["traceEvents"]]


def test_a_stretch_of_1x(step, tmp_path, capfd):
    path = str(tmp_path / "new" / "profile")
    step()
    with fluid.profiler.profiler("CPU", "total", path):
        step()
        step()
    step()
    table = capfd.readouterr().out
    assert "GFLOP/s" in table and "update sgd" in table
    row = next(line for line in table.splitlines() if line.startswith("update sgd"))
    assert row.split()[2] == "2"
    one = len(names_in(path))
    fluid.profiler.start_profiler("All")
    step()
    fluid.profiler.reset_profiler()
    step()
    fluid.profiler.stop_profiler("calls", path)
    assert len(names_in(path)) * 2 == one
    assert "update sgd" in capfd.readouterr().out
    fluid.profiler.stop_profiler()  # nothing runs: nothing to say
    assert capfd.readouterr().out == ""


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="state"):
        fluid.profiler.start_profiler("TPU")
    with pytest.raises(ValueError, match="sorted_key"):
        fluid.profiler.stop_profiler("size")
    with pytest.raises(ValueError, match="no option 'color'"):
        paddle.utils.profiler.ProfilerOptions({"color": 1})
    fluid.profiler.start_profiler()
    with pytest.raises(paddle.FleetXError, match="cannot write the trace"):
        fluid.profiler.stop_profiler(None, str(tmp_path))


def test_a_range_of_batches(step, capfd):
    with paddle.utils.profiler.Profiler(options={"batch_range": [1, 3]}) as p:
        for _ in range(4):
            step()
            p.record_step()
    out = capfd.readouterr().out
    assert out.count("GFLOP/s") == 1
    assert next(line for line in out.splitlines() if line.startswith("update sgd")).split()[2] == "2"


def test_a_schedule_of_2x(step, tmp_path, capfd):
    schedule = profiler.make_scheduler(closed=1, ready=1, record=2, repeat=1)
    assert [schedule(i).name for i in range(5)] == ["CLOSED", "READY", "RECORD", "RECORD_AND_RETURN", "CLOSED"]
    p = profiler.Profiler(targets=[profiler.ProfilerTarget.CPU], scheduler=schedule,
                          on_trace_ready=profiler.export_chrome_tracing(str(tmp_path)))
    with p:
        for _ in range(6):
            with profiler.RecordEvent("my step"):
                step()
            p.step(num_samples=4)
        assert "ips" in p.step_info()
    files = list(tmp_path.iterdir())
    assert len(files) == 1 and "fc" in " ".join(names_in(files[0]))
    p.summary()
    out = capfd.readouterr().out
    assert "update sgd" in out and "event my step" in out
    with pytest.raises(ValueError, match="record"):
        profiler.make_scheduler(closed=0, ready=0, record=0)
    with pytest.raises(paddle.FleetXError, match="nothing was recorded"):
        profiler.Profiler(timer_only=True).export("x")
