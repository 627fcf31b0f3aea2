"""The trainer with several workers, started by fleetrun."""
import os
import re
import subprocess

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


def test_two_workers_train_one_network(flowers, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    command = ["fleetrun", "--nproc_per_node=2", "--log_dir=log", "train.py", str(flowers)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "FLEETX_LOG": "warning"}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
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
