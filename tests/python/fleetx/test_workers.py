"""The trainer with several workers, started by fleetrun."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]

SCRIPT = '''
import sys
import fleetx as X
import paddle
import paddle.distributed.fleet as fleet

fleet.init(is_collective=True)
model = X.applications.Resnet50(class_dim=4, image_shape=[3, 32, 32], width=4)
loader = model.get_train_dataloader(sys.argv[1], batch_size=4, num_threads=1)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Momentum(0.001, momentum=0.9))
optimizer.minimize(model.loss)
trainer = X.MultiGPUTrainer()
trainer.fit(model, loader, epoch=2, start_step=3)
scope = paddle.static.global_scope()
weights = sum(float(abs(scope.find_var(name).get_tensor().numpy()).sum()) for name in model.parameter_list())
print(f"weights of {fleet.worker_index()}: {weights!r}")
'''


def by_two_workers(folder, *command):
    done = subprocess.run(["fleetrun", "--nproc_per_node=2", "--log_dir=log", *map(str, command)], cwd=folder,
                          capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "FLEETX_LOG": "warning", "XDG_CACHE_HOME": str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example(tmp_path):
    out = by_two_workers(tmp_path, ROOT / "examples/flowers_fleetx.py", "--train", 32, "--pixels", 40, "--size", 32,
                         "--width", 4, "--epochs", 2, "--curves", "curves.png")
    assert out.count("flowers: 32 + 400 generated pictures of 8 kinds") == 1
    assert out.count("worker_index: 0, validation of 400 samples: loss: ") == 2
    assert re.search(r"^\d+\.\d % of 400 pictures it has not seen \(guessing: 12.5 %\)", out, re.M)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_two_workers_train_one_network(flowers, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    by_two_workers(tmp_path, "train.py", flowers)
    logs = [(tmp_path / f"log/workerlog.{rank}").read_text() for rank in range(2)]
    for rank, log in enumerate(logs):
        lines = [line for line in log.splitlines() if line.startswith(("(", "read", "worker_index", "weights"))]
        assert lines[:3] == ["('reader shuffle seed', 0)", f"('trainerid, trainer_count', {rank}, 2)",
                             f"read images from {31 * rank}, length: 31, lines length: 31, total: 62"]
        # 7 steps of 4 pictures in each of two passes, printed from step 4 on.
        steps = re.findall(r"worker_index: (\d), step(\d+), train_loss: ", log)
        assert steps == [(str(rank), str(step)) for step in (4, 5, 6)] * 2
    weights = [re.search(r"weights of \d: (\S+)", log)[1] for log in logs]
    assert weights[0] == weights[1], "the same bits on both workers"
    losses = [re.findall(r"train_loss: (\S+),", log) for log in logs]
    assert losses[0] != losses[1], "of different pictures"
