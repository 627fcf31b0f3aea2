"""Training loops with the output lines of the documents."""
import contextlib
import os
import time
from typing import Dict, Iterable, Optional, Sequence, Union

import paddle
from fleetx import _job
from fleetx.applications.model import Model
from paddle import static
from paddle._native import native
from paddle.distributed import fleet


class CPUTrainer:
    """A worker of a job with parameter servers, or alone. fit() does all that a worker does: the startup program,
    init_worker, the passes, stop_worker. A server calls fleet.init_server and run_server instead."""

    def __init__(self):
        self.exe = static.Executor(paddle.CPUPlace())
        self.step = 0
        self.history = {"train loss": []}  # points (step, value)

    def fit(self, model, dataloader: Iterable, epoch: int = 1, start_step: int = 10) -> None:
        """Goes `epoch` times through the data. From step start_step + 1 of a pass on, a line per step."""
        with _as_worker(self.exe):
            for _ in range(epoch):
                for step, loss, total, took in _timed(
                        lambda data: self.exe.run(fleet.main_program, feed=data, fetch_list=[model.loss])[0], dataloader,
                        start_step):
                    self.step += 1
                    self.history["train loss"].append((self.step, loss))
                    _print_step(step, start_step, loss, total, took)


class CPUDatasetTrainer:
    """The same with a QueueDataset or an InMemoryDataset."""

    def __init__(self):
        self.exe = static.Executor(paddle.CPUPlace())

    def fit(self, model, dataset, epoch: int = 1, print_period: int = 100) -> None:
        with _as_worker(self.exe):
            for i in range(epoch):
                begin = time.time()
                self.exe.train_from_dataset(fleet.main_program, dataset, fetch_list=[model.loss], fetch_info=["loss"],
                                            print_period=print_period)
                print("worker_index: %d, epoch: %d, total time cost = %f" % (_job.rank(), i, time.time() - begin),
                      flush=True)


@contextlib.contextmanager
def _as_worker(exe):
    """In a job with servers: connected inside, and the servers know when it is done. An error leaves without a word, so
    that they know it too."""
    exe.run(fleet.startup_program)
    if fleet.server_num() > 0:
        fleet.init_worker()
    yield
    if fleet.server_num() > 0:
        fleet.stop_worker()


def _timed(run, dataloader, start_step):
    """(step, loss, seconds since start_step, seconds of the step); waiting for data counts."""
    total, last = 0.0, time.time()
    for step, data in enumerate(dataloader):
        loss = float(run(data).mean())
        now = time.time()
        took, last = now - last, now
        total += took if step > start_step else 0.0
        yield step, loss, total, took


def _print_step(step, start_step, loss, total, took):
    if step > start_step:
        print("worker_index: %d, step%d, train_loss: %f, total time cost = %f, step per second: %f, speed: %f" %
              (_job.rank(), step, loss, total, (step - start_step) / total, 1 / took), flush=True)


class MultiGPUTrainer:
    """One worker of a job; `fleetrun` starts several. The constructor runs the default startup program."""

    def __init__(self):
        selected = native.env("FLAGS_selected_gpus") or "0"
        self.place = paddle.CUDAPlace(int(selected.split(",")[0]))
        self.exe = static.Executor(self.place)
        self.exe.run(static.default_startup_program())
        self.step = 0  # updates so far
        self.history = {"train loss": [], "validation": {}}  # points (step, value)
        self._tests = {}

    def fit(self, model: Model, dataloader: Iterable, epoch: int = 1, use_dali: bool = False,
            start_step: int = 10) -> None:
        """Goes `epoch` times through the data. From step start_step + 1 of a pass on, a line per step: time and
        steps per second since then, `speed` being that of the last step alone."""
        for _ in range(epoch):
            for step, loss, total, took in _timed(
                    lambda data: self.exe.run(model.main_prog, feed=data, fetch_list=[model.loss])[0], dataloader,
                    start_step):
                self.step += 1
                self.history["train loss"].append((self.step, loss))
                _print_step(step, start_step, loss, total, took)

    def val(self, model: Model, dataloader: Iterable, target_list: Optional[Sequence[str]] = None,
            use_dali: bool = False) -> Dict[str, float]:
        """{target: mean over all samples}, and the loss. `target_list`: names in model.target, default all."""
        names = list(model.target) if target_list is None else list(target_list)
        unknown = [name for name in names if name not in model.target]
        if unknown:
            raise native.InvalidArgumentError(f"unknown target '{unknown[0]}'; the model has {', '.join(model.target)}")
        if id(model) not in self._tests:
            # The model is kept too: its id must stay its own.
            self._tests[id(model)] = (model.main_prog.clone(for_test=True), model)
        program = self._tests[id(model)][0]
        names = ["loss", *names]
        fetch = [model.loss, *(model.target[name] for name in names[1:])]
        sums, count = [0.0] * len(names), 0
        for data in dataloader:
            feed = data[0] if isinstance(data, (list, tuple)) else data
            samples = len(feed[model.inputs[0].name])
            values = self.exe.run(program, feed=feed, fetch_list=fetch)
            sums = [s + samples * float(v.mean()) for s, v in zip(sums, values)]
            count += samples
        if count == 0:
            raise native.InvalidArgumentError("the loader gave nothing to validate with")
        result = {name: s / count for name, s in zip(names, sums)}
        for name, value in result.items():
            self.history["validation"].setdefault(name, []).append((self.step, value))
        print(f"worker_index: {_job.rank()}, validation of {count} samples: " +
              ", ".join(f"{name}: {value:.5f}" for name, value in result.items()), flush=True)
        return result

    validate = val

    # ---- timing ----
    def _steps_per_second(self, run, dataloader, start_step, steps):
        done, begin = 0, None
        while True:
            before = done
            for data in dataloader:
                run(data)
                done += 1
                if done == start_step:
                    begin = time.time()
                if done == start_step + steps:
                    return steps / (time.time() - begin)
            if done == before:
                raise native.InvalidArgumentError("the loader gave nothing to measure with")

    def benchmark(self, model: Model, dataloader: Iterable, start_step: int = 20, steps: int = 100) -> float:
        """Steps per second of `steps` steps, the first `start_step` left out; goes through the data as often as it
        takes."""
        rate = self._steps_per_second(
            lambda data: self.exe.run(model.main_prog, feed=data, fetch_list=[model.loss]), dataloader,
            max(1, start_step), steps)
        print(f"worker_index: {_job.rank()}, {steps} steps, step per second: {rate:f}", flush=True)
        return rate

    def quick_benchmark(self, model: Model, dataloader: Iterable, start_step: int = 20, end_step: int = 200) -> float:
        return self.benchmark(model, dataloader, start_step, end_step - start_step)

    def benchmark_val(self, model: Model, dataloader: Iterable, target_list: Optional[Sequence[str]] = None,
                      start_step: int = 20, steps: int = 100) -> float:
        """The same of the program for validation."""
        program = model.main_prog.clone(for_test=True)
        fetch = [model.target[name] for name in target_list or model.target]
        return self._steps_per_second(lambda data: self.exe.run(program, feed=data, fetch_list=fetch), dataloader,
                                      max(1, start_step), steps)

    # ---- curves ----
    def plot(self, path: Union[str, os.PathLike]) -> None:
        """Loss (of training: means of about a hundred stretches) and accuracies against the step, as a PNG."""
        validation = self.history["validation"]
        losses = {"train": _means(self.history["train loss"], 100), "validation": validation.get("loss", [])}
        panels = [{"title": "Loss", "x": "step", "series": {k: v for k, v in losses.items() if v}}]
        others = {name: points for name, points in validation.items() if name != "loss"}
        if others:
            panels.append({"title": "Validation", "x": "step", "series": others})
        native.plot_curves(str(path), panels)


def _means(points, count):
    """About `count` points of (last step, mean value) of as many stretches."""
    length = max(1, -(-len(points) // count))
    stretches = (points[at:at + length] for at in range(0, len(points), length))
    return [(stretch[-1][0], sum(value for _, value in stretch) / len(stretch)) for stretch in stretches]
