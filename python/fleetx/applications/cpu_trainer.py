"""Workers of jobs with parameter servers, or alone, with the output lines of the original."""
import contextlib
import os
import time
import warnings
from typing import Dict, Iterable, Optional, Sequence, Union

import numpy

import paddle
from fleetx import _job
from fleetx.applications.training import Curves, Events, print_step, targets_of, timed
from paddle import static
from paddle._native import native
from paddle.distributed import fleet
from paddle.distributed.fleet import api


class CPUTrainer(Curves):
    """fit() does all that a worker does: the startup program, init_worker, the passes, stop_worker. A server calls
    fleet.init_server and run_server instead. Without servers it trains alone.

    calc_line -- does CPUDatasetTrainer count lines, or words
    log_dir -- where worker 0 writes train/loss (where it is known in every step) and val/<target> for TensorBoard; and every
        histogram_every steps (of CPUTrainer) histograms of the parameters that it holds
    """

    def __init__(self, calc_line: bool = True, log_dir: Union[str, os.PathLike, None] = None,
                 histogram_every: int = 0):
        super().__init__(_job.worker()[0])
        self._events = Events(log_dir, _job.worker()[0], histogram_every)
        self.place = paddle.CPUPlace()
        self.exe = static.Executor(self.place)
        self.calc_line = calc_line
        self._test = None  # (main program, the one for validation)

    def fit(self, model, dataloader: Iterable, epoch: int = 1, start_step: int = 10, val_dataloader: Optional[Iterable] = None,
            save_path: Union[str, os.PathLike, None] = None) -> None:
        """Goes `epoch` times through the data. From step start_step + 1 of a pass on, a line per step.

        val_dataloader -- val(model, val_dataloader) after every pass, while the servers are there
        save_path -- fleet.save_persistables into save_path/epoch_N after pass N
        With either, workers that wait for each other (sync) end a pass with the one that has the fewest batches.
        """
        with self._as_worker():
            for i in range(epoch):
                _reset(model)
                data = _passed(dataloader) if val_dataloader is None and save_path is None else _in_step(_passed(dataloader))
                for step, loss, total, took in timed(
                        lambda feed: self.exe.run(fleet.main_program, feed=feed, fetch_list=[model.loss])[0], data,
                        start_step):
                    self.step += 1
                    self.history["train loss"].append((self.step, loss))
                    self._events.add("train/loss", self.step, loss)
                    self._events.add_parameters(model.main_prog, self.step)
                    print_step(_job.worker()[0], step, start_step, loss, total, took)
                self._end_pass(model, i, val_dataloader, save_path)

    def val(self, model, dataloader: Iterable, target_list: Optional[Sequence[str]] = None) -> Dict[str, float]:
        """{target: value} and the loss, over the samples of all workers; every worker calls it with its share, which loaders
        give. For loops of one's own; fit(val_dataloader=...) calls it. In a job with servers it works until stop_worker."""
        names = ["loss", *targets_of(model, target_list)]
        fetch = [model.loss, *(model.target[name] for name in names[1:])]
        if self._test is None or self._test[0] is not fleet.main_program:
            self._test = fleet.main_program, fleet.main_program.clone(for_test=True)
        before = _reset(model)
        sums = numpy.zeros(1 + len(names))  # samples, and values times samples
        for data in _passed(dataloader):
            feed = data[0] if isinstance(data, (list, tuple)) else data
            values = self.exe.run(self._test[1], feed=feed, fetch_list=fetch)
            sums += len(feed[model.inputs[0].name]) * numpy.array([1.0, *(float(v.mean()) for v in values)])
        count, *sums = fleet.util.all_reduce(sums)
        if count == 0:
            raise native.InvalidArgumentError("the loader gave nothing to validate with")
        result = {name: float(s / count) for name, s in zip(names, sums)}
        if "auc" in names:  # not a mean, but of the states, which now have counted these samples
            result["auc"] = float(fleet.metrics.auc(*(s.name for s in model.auc_states)))
        _set(before)
        for name, value in result.items():
            self.history["validation"].setdefault(name, []).append((self.step, value))
            self._events.add(f"val/{name}", self.step, value)
        print(f"worker_index: {_job.worker()[0]}, validation of {int(count)} samples: " +
              ", ".join(f"{name}: {value:.5f}" for name, value in result.items()), flush=True)
        return result

    # ---- what is shared with data sets ----
    @contextlib.contextmanager
    def _as_worker(self):
        """In a job with servers: connected inside, and the servers know when it is done. An error leaves without a word,
        so that they know it too."""
        self.exe.run(fleet.startup_program)
        if fleet.server_num() > 0:
            fleet.init_worker()
        yield
        if fleet.server_num() > 0:
            fleet.stop_worker()

    def _end_pass(self, model, number, val_dataloader, save_path):
        if val_dataloader is not None:
            self.val(model, val_dataloader)
        if save_path is not None:
            fleet.barrier_worker()  # all of the pass is in it
            fleet.save_persistables(self.exe, os.path.join(save_path, f"epoch_{number}"))

    def get_total_lines(self, file_list: Sequence[str]) -> int:
        """Counts and prints them."""
        return _counted(file_list, "line", "lines", lambda text: text.count(b"\n"))

    def get_total_words(self, file_list: Sequence[str]) -> int:
        """Counts and prints them; words are what blanks and ends of lines separate."""
        return _counted(file_list, "words", "words", lambda text: len(text.split()))


class CPUDatasetTrainer(CPUTrainer):
    """The same with a QueueDataset, an InMemoryDataset, or a loader, of which it takes loader.dataset(): the files in their
    order, also with shuffle=True. (Orders of a data set are those of InMemoryDataset.) The loop over the batches is C++, so curves
    are by passes."""

    _x = "pass"

    def fit(self, model, dataset, epoch: int = 1, print_period: int = 1000, val_dataloader: Optional[Iterable] = None,
            save_path: Union[str, os.PathLike, None] = None) -> None:
        """Goes `epoch` times through the data; prints the loss every print_period batches, and after a pass its lines (or
        words) per second. The rest as CPUTrainer.fit."""
        dataset = dataset.dataset() if hasattr(dataset, "dataset") else dataset
        with self._as_worker():
            total = self._total(dataset)
            for i in range(epoch):
                begin = time.time()
                _reset(model)
                if _waits_for_others() and (val_dataloader is not None or save_path is not None):
                    for feed in _in_step(dataset.feeds()):
                        self.exe.run(fleet.main_program, feed=feed)
                else:
                    self.exe.train_from_dataset(fleet.main_program, dataset, fetch_list=[model.loss],
                                                fetch_info=[model.loss.name], print_period=print_period)
                print("epoch: %d finished, speed: %f %s/s" % (i, total / (time.time() - begin),
                                                              "samples" if self.calc_line else "words"), flush=True)
                self.step += 1
                self._end_pass(model, i, val_dataloader, save_path)

    def _total(self, dataset):
        if all(_is_text(name) for name in dataset.filelist):
            return (self.get_total_lines if self.calc_line else self.get_total_words)(dataset.filelist)
        if not self.calc_line:
            raise native.UnsupportedError("CPUDatasetTrainer(calc_line=False): words of packed and binary files are not counted")
        batches, total = dataset._read(4096), 0
        while some := native.SampleStore.load(batches, 100_000).size:
            total += some
        batches.close()
        print(f"Total lines: {total}", flush=True)
        return total


def _is_text(name):
    with open(name, "rb") as file:
        return not name.endswith((".gz", ".zst")) and file.read(8) != b"FLEETXS1"


def _passed(dataloader):
    """One pass: of a data set, of a loader that is called as in the original, or of what can be iterated over."""
    if hasattr(dataloader, "feeds"):
        return dataloader.feeds()
    return dataloader() if callable(dataloader) else dataloader


def _waits_for_others():
    """In a job with servers: does a step need those of the other workers?"""
    if fleet.server_num() == 0 or fleet.worker_num() == 1:
        return False
    servers, strategy = api._made()._servers, api._made().user_defined_strategy or fleet.DistributedStrategy()
    return servers["mode"] == "sync" if servers else not strategy.a_sync


def _in_step(data):
    """Where workers wait for each other in every step, all end a pass with the one that has the fewest batches. Otherwise
    one would wait for a step of another, which waits for it at the end of the pass."""
    if not _waits_for_others():
        yield from data
        return
    data = iter(data)
    while True:
        feed = next(data, None)
        if not fleet.util.all_reduce(int(feed is not None), "min"):
            break
        yield feed
    if feed is not None:
        warnings.warn(f"another worker has no more batches: {1 + sum(1 for _ in data)} of this one are left out of the pass")


def _reset(model):
    """AUC counts from here on. Returns {variable: counts until now}."""
    scope, before = static.global_scope(), {}
    for state in getattr(model, "auc_states", ()):
        before[state.name] = scope.find_var(state.name).get_tensor().numpy()
    _set({name: 0 * counts for name, counts in before.items()})
    return before


def _set(states):
    for name, counts in states.items():
        static.global_scope().find_var(name).get_tensor().set(counts)


def _counted(file_list, one, many, count):
    total = 0
    for name in file_list:
        with open(name, "rb") as file:
            # Read in pieces that end with a line.
            here = sum(count(b"".join(lines)) for lines in iter(lambda: file.readlines(1 << 20), []))
        print(f"file: {name} has {here} {one}")
        total += here
    print(f"Total {many}: {total}", flush=True)
    return total
