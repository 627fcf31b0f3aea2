"""A script that fails while threads of it are at work ends with its own error, alone and under fleetrun."""
import sys

import pytest

import documents

# Threads that compute, read pictures or make batches: they come back from C++, or wait there, while the interpreter ends.
HEAD = '''
import sys, threading, time
import numpy as np
import paddle
from paddle import static
paddle.enable_static()
main, startup = static.Program(), static.Program()
with static.program_guard(main, startup):
    x = static.data("x", [None, 64], "float32")
    out = static.nn.fc(x, 64)
'''
COMPUTE = HEAD + '''
def compute():
    exe, scope = static.Executor(), static.Scope()
    exe.run(startup, scope=scope)
    array = np.ones((64, 64), "float32")
    while True:
        exe.run(main, feed={"x": array}, fetch_list=[out], scope=scope)
        ready.set()
ready = threading.Event()
for _ in range(3):
    threading.Thread(target=compute, daemon=True).start()
ready.wait()
'''
PICTURES = HEAD + '''
from paddle._native import native
folder = native.cached_flowers(classes=4, train=61, val=10, size=64)
def pictures():
    loader = native.ImageLoader(list=folder + "/train.txt", batch=2, train=True, size=32, resize=40, min_area=0.5, classes=4,
                                shuffle=True, drop_last=True, seed=0, rank=0, world=1, threads=1, prefetch=1,
                                on_damaged="raise", image="image", label="label")
    for number in range(10**6):
        loader.begin_pass(number)
        for _ in range(loader.batches):
            yield loader.next()
readers = [paddle.reader.buffered(pictures, 2)() for _ in range(3)]
for reader in readers:
    next(reader)
mapped = paddle.reader.xmap_readers(lambda s: s, pictures, 3, 4)()
next(mapped)
'''
BATCHES = HEAD + '''
def samples():
    while True:
        yield np.random.randn(64).astype("float32"),
loader = paddle.io.DataLoader.from_generator(feed_list=[x], capacity=8)
loader.set_sample_generator(samples, batch_size=16)
running = [iter(loader()) for _ in range(3)]
for one in running:
    next(one)
'''
SCRIPTS = {"compute": COMPUTE, "pictures": PICTURES, "batches": BATCHES}
FAIL = 'raise ValueError("the error of the script itself")\n'


def check(result):
    assert result.code == 1, (result.code, result.output)
    assert 'ValueError: the error of the script itself' in result.output and "terminate called" not in result.output, result.output


@pytest.mark.parametrize("kind", SCRIPTS)
def test_the_scripts_own_error(kind, tmp_path):
    (tmp_path / "a.py").write_text(SCRIPTS[kind] + FAIL)
    for _ in range(4):  # it depends on where the threads are
        check(documents.run([sys.executable, "a.py"], tmp_path, timeout=60, environment={"XDG_CACHE_HOME": str(tmp_path)}))


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_good_end(kind, tmp_path):
    (tmp_path / "a.py").write_text(SCRIPTS[kind] + 'print("done")\n')
    for _ in range(2):
        result = documents.run([sys.executable, "a.py"], tmp_path, timeout=60,
                               environment={"XDG_CACHE_HOME": str(tmp_path)})
        assert result.code == 0 and "done" in result.output and "terminate called" not in result.output, result.output


@pytest.mark.parametrize("kind", SCRIPTS)
def test_a_workers_own_error(kind, tmp_path):
    (tmp_path / "a.py").write_text(SCRIPTS[kind] + '''
from paddle.distributed import fleet
fleet.init(is_collective=True)
fleet.barrier_worker()
if fleet.worker_index() == 1:
    ''' + FAIL + '''
fleet.barrier_worker()
''')
    result = documents.run("fleetrun --nproc_per_node=2 a.py", tmp_path, timeout=60,
                           environment={"XDG_CACHE_HOME": str(tmp_path)})
    assert result.code != 0 and "the error of the script itself" in result.output, result.output
    assert "worker 1 failed: exit code 1" in result.output and "terminate called" not in result.output, result.output
