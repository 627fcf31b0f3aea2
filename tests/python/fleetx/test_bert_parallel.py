"""BERT whose layers workers divide because the strategy says mp_degree: the script is the same for one worker and for many."""
import os
import re
import subprocess
import sys

import numpy
import pytest

SCRIPT = '''
import sys
import fleetx as X
import paddle
from paddle import static
from paddle.distributed import fleet

folder, degrees, saved = sys.argv[1], eval(sys.argv[2]), sys.argv[3]
paddle.seed(7)
strategy = fleet.DistributedStrategy()
fleet.init(is_collective=True)
model = X.applications.Bert(vocab_size=60, hidden=32, layers=2, heads=4, max_seq_len=16, dropout=0.0)
loader = model.get_train_dataloader(folder, batch_size=4)
if degrees:
    strategy.hybrid_configs = degrees
fleet.distributed_optimizer(paddle.optimizer.Momentum(0.05, momentum=0.9), strategy).minimize(model.loss)
exe = static.Executor()
exe.run(model.startup_prog)
for step, feed in zip(range(6), loader):
    value, = exe.run(model.main_prog, feed=feed, fetch_list=[model.loss])
    print("step %d loss %.9g" % (step, float(value.item())), flush=True)
fleet.save_persistables(exe, saved, model.main_prog)
'''


@pytest.fixture
def folder(tmp_path):
    words = "zero one two three four five six seven eight nine ten eleven".split()
    lines = []
    for d in range(40):
        lines += [" ".join(words[(d + s + i) % 12] for i in range(6)) for s in range(6)] + [""]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def train(folder, workers, degrees):
    """The losses of every worker, and what was saved."""
    saved = folder / f"saved_{workers}"
    command = [sys.executable] if workers == 1 else ["fleetrun", f"--nproc_per_node={workers}", f"--log_dir=log_{workers}"]
    done = subprocess.run([*command, "train.py", ".", repr(degrees), str(saved)], cwd=folder, capture_output=True, text=True,
                          timeout=300, check=False, env={**os.environ, "FLEETX_LOG": "warning"})
    assert done.returncode == 0, done.stdout + done.stderr
    logs = [done.stdout] if workers == 1 else [(folder / f"log_{workers}/workerlog.{r}").read_text() for r in range(workers)]
    return [[float(v) for v in re.findall(r"step \d loss (\S+)", log)] for log in logs], saved


def test_two_workers_learn_what_one_does_and_save_it_whole(folder):
    (alone,), whole = train(folder, 1, {})
    assert len(alone) == 6 and alone[-1] < alone[0]
    (first, second), saved = train(folder, 2, {"mp_degree": 2})
    numpy.testing.assert_allclose(first, alone, rtol=1e-5)
    assert first == second, "they are fed the same"
    files = sorted(p.relative_to(whole) for p in whole.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(saved) for p in saved.rglob("*") if p.is_file())
    assert [(whole / f).stat().st_size for f in files] == [(saved / f).stat().st_size for f in files]


def test_beside_data_parallel_pairs_are_fed_the_same(folder):
    losses, _ = train(folder, 4, {"mp_degree": 2, "dp_degree": 2})
    assert losses[0] == losses[1] and losses[2] == losses[3] and losses[0] != losses[2]
