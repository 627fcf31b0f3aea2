"""Training loops with the output lines of the documents."""
import os
import time
from typing import Dict, Iterable, Optional, Sequence, Union

import paddle
from fleetx import _job
from fleetx.applications.cpu_trainer import CPUDatasetTrainer, CPUTrainer  # noqa: F401
from fleetx.applications.model import Model
from fleetx.applications.recommend import has_update
from fleetx.applications.training import Curves, Events, print_step, targets_of, timed
from paddle import static
from paddle._native import native


class MultiGPUTrainer(Curves):
    """One worker of a job; `fleetrun` starts several. The constructor runs the default startup program. With `log_dir`,
    worker 0 writes train/loss, train/steps_per_second and val/<target> for TensorBoard there, and every `histogram_every` steps
    of fit() histograms of all parameters."""

    def __init__(self, log_dir: Union[str, os.PathLike, None] = None, histogram_every: int = 0):
        super().__init__(_job.rank())
        self._events = Events(log_dir, _job.rank(), histogram_every)
        selected = native.env("FLAGS_selected_gpus") or "0"
        self.place = paddle.CUDAPlace(int(selected.split(",")[0]))
        self.exe = static.Executor(self.place)
        self.exe.run(static.default_startup_program())
        self._tests = {}

    def fit(self, model: Model, dataloader: Iterable, epoch: int = 1, use_dali: bool = False,
            start_step: int = 10) -> None:
        """Goes `epoch` times through the data. From step start_step + 1 of a pass on, a line per step: time and
        steps per second since then, `speed` being that of the last step alone. A model that has no optimizer gets one,
        and the strategy that suits it (model.strategy()); a line for each choice says why."""
        if not has_update(model.main_prog):
            for line in model.minimize_by_default():
                print(line, flush=True)
            self.exe.run(model.startup_prog)  # what the optimizer keeps
        for _ in range(epoch):
            for step, loss, total, took in timed(
                    lambda data: self.exe.run(model.main_prog, feed=data, fetch_list=[model.loss])[0], dataloader,
                    start_step):
                self.step += 1
                self.history["train loss"].append((self.step, loss))
                self._events.add("train/loss", self.step, loss)
                self._events.add("train/steps_per_second", self.step, 1 / took)
                self._events.add_parameters(model.main_prog, self.step)
                print_step(_job.rank(), step, start_step, loss, total, took)

    def val(self, model: Model, dataloader: Iterable, target_list: Optional[Sequence[str]] = None,
            use_dali: bool = False) -> Dict[str, float]:
        """{target: mean over all samples}, and the loss. `target_list`: names in model.target, default all. A model may say
        what its means are over (samples_of) and what follows from them (summarize)."""
        names = targets_of(model, target_list)
        if id(model) not in self._tests:
            # The model is kept too: its id must stay its own.
            self._tests[id(model)] = (model.main_prog.clone(for_test=True), model)
        program = self._tests[id(model)][0]
        names = ["loss", *names]
        fetch = [model.loss, *(model.target[name] for name in names[1:])]
        sums, count = [0.0] * len(names), 0
        for data in dataloader:
            feed = data[0] if isinstance(data, (list, tuple)) else data
            samples = model.samples_of(feed) if hasattr(model, "samples_of") else len(feed[model.inputs[0].name])
            values = self.exe.run(program, feed=feed, fetch_list=fetch)
            sums = [s + samples * float(v.mean()) for s, v in zip(sums, values)]
            count += samples
        if count == 0:
            raise native.InvalidArgumentError("the loader gave nothing to validate with")
        result = {name: s / count for name, s in zip(names, sums)}
        if hasattr(model, "summarize"):
            result = model.summarize(result)
        for name, value in result.items():
            self.history["validation"].setdefault(name, []).append((self.step, value))
            self._events.add(f"val/{name}", self.step, value)
        print(f"worker_index: {_job.rank()}, validation of {count:.0f} samples: " +
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
