"""What all trainers do."""
import os
import time
from typing import Union

from fleetx.utils.plot import plot_curves
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


class Curves:
    """history -- points (step, value); a trainer that does not see the single steps counts passes (`_x`)"""

    _x = "step"

    def __init__(self, worker):
        self._worker = worker
        self.step = 0  # updates so far
        self.history = {"train loss": [], "validation": {}}

    def plot(self, path: Union[str, os.PathLike]) -> None:
        """Loss (of training: means of about a hundred stretches) and what validation gave against the step, as a PNG. Worker 0
        writes it, the others nothing."""
        if self._worker != 0:
            return
        validation = self.history["validation"]
        losses = {"train": _means(self.history["train loss"], 100), "validation": validation.get("loss", [])}
        others = {name: points for name, points in validation.items() if name != "loss"}
        panels = {"Loss": {k: v for k, v in losses.items() if v}, "Validation": others}
        panels = {title: series for title, series in panels.items() if series}
        plot_curves(path, panels, self._x, [title == "Loss" for title in panels])


def _means(points, count):
    """About `count` points of (last step, mean value) of as many stretches."""
    length = max(1, -(-len(points) // count))
    stretches = (points[at:at + length] for at in range(0, len(points), length))
    return [(stretch[-1][0], sum(value for _, value in stretch) / len(stretch)) for stretch in stretches]


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
