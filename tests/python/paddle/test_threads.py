"""Threads of a plain `python train.py`: whose they are, and how many."""
import os
import subprocess
import sys

import pytest

TRAIN = """
import os, sys
import numpy as np
import paddle
from paddle import fluid

def threads():
    return {task: open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")}

paddle.enable_static()
image = fluid.data("image", [None, 16, 32, 32])
loss = fluid.layers.mean(fluid.layers.conv2d(image, 16, 3, act="relu"))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
before = threads()
for _ in range(3):
    value = exe.run(feed={"image": np.ones([8, 16, 32, 32], "float32")}, fetch_list=[loss])[0]
assert np.isfinite(value).all()
print(*sorted(name for task, name in threads().items() if task not in before))
"""


def train(first="", **environment):
    run = subprocess.run([sys.executable, "-c", first + TRAIN], capture_output=True, text=True, check=False, timeout=300,
                         env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "FLEETX_THREADS": "2", **environment})
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_all_threads_that_compute_are_ours():
    """Also oneDNN's: GNU OpenMP would have started one that waits as GNU OpenMP does."""
    assert set(train()) == {"fleetx-team"}


def test_another_openmp_may_be_there_first():
    """As after `import torch`: oneDNN keeps to it, and all works."""
    train("import ctypes; ctypes.CDLL('libgomp.so.1', ctypes.RTLD_GLOBAL)\n")


def test_one_thread_starts_none():
    assert train(FLEETX_THREADS="1") == []


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
