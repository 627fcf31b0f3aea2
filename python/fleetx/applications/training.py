"""What all trainers do."""
import os
import time

from paddle import static
from paddle._native import native


def timed(run, dataloader, start_step):
    """(step, loss, seconds since start_step, seconds of the step); waiting for data counts."""
    total, last = 0.0, time.time()
    for step, data in enumerate(dataloader):
        loss = float(run(data).mean())
        now = time.time()
        took, last = now - last, now
        total += took if step > start_step else 0.0
        yield step, loss, total, took


def print_step(worker, step, start_step, loss, total, took):
    if step > start_step:
        print("worker_index: %d, step%d, train_loss: %f, total time cost = %f, step per second: %f, speed: %f" %
              (worker, step, loss, total, (step - start_step) / total, 1 / took), flush=True)


class Events:
    """Scalars for TensorBoard, by worker 0, and every `histogram_every` steps (0: never) the values of all parameters; without
    a folder nothing is written."""

    def __init__(self, log_dir, worker, histogram_every=0):
        if histogram_every < 0 or (histogram_every and log_dir is None):
            raise native.InvalidArgumentError(f"histogram_every is {histogram_every}; must not be negative, and needs a log_dir")
        self._every = histogram_every
        self._file = native.EventFile(os.fspath(log_dir)) if log_dir is not None and worker == 0 else None

    def add(self, tag, step, value):
        if self._file is not None:
            self._file.scalar(tag, step, value)

    def add_parameters(self, program, step):
        if self._file is None or not self._every or step % self._every:
            return
        scope = static.global_scope()
        for parameter in program.all_parameters():
            held = scope.find_var(parameter.name)
            if held is not None:  # tables may be on servers
                self._file.histogram(f"parameters/{parameter.name}", step, held.get_tensor().numpy())


def targets_of(model, target_list):
    """The names, all where there is no list."""
    names = list(model.target) if target_list is None else list(target_list)
    unknown = [name for name in names if name not in model.target]
    if unknown:
        raise native.InvalidArgumentError(f"unknown target '{unknown[0]}'; the model has {', '.join(model.target) or 'none'}")
    return names
