"""Data sets of text files for Executor.train_from_dataset. Each file goes through pipe_command, which prints samples as
lines "n v1 ... vn n v1 ..." in the order of use_var; C++ parses them (fleetx/data/multi_slot.h)."""
import itertools
import os
import random
import subprocess

import numpy

from paddle import _graph
from paddle._executor import LoDTensor
from paddle._native import native
from paddle.reader import buffered

__all__ = ["DatasetBase", "InMemoryDataset", "QueueDataset"]


# Settings of the original: how it hands batches to its threads, and what changes the samples.
_ACCEPTED = {"input_type", "download_cmd", "queue_num", "data_feed_type", "merge_size", "fleet_send_batch_size",
             "fleet_send_sleep_seconds", "fea_eval", "candidate_size"}
_HDFS, _FORM = "data sets on HDFS are not here; fetch the files first", "lines hold the slots of use_var and nothing else here"
_REFUSED = {"fs_name": _HDFS, "fs_ugi": _HDFS, "parse_ins_id": _FORM, "parse_content": _FORM, "parse_logkey": _FORM,
            "enable_pv_merge": _FORM, "merge_by_sid": _FORM}


class DatasetBase:
    def __init__(self):
        self.use_var, self.filelist = [], []
        self.pipe_command, self.batch_size, self.thread_num = "cat", 1, 1

    def init(self, batch_size=1, thread_num=1, use_var=(), pipe_command="cat", input_type=0, fs_name="", fs_ugi="",
             download_cmd="cat", **kwargs):
        """thread_num: of the original's training threads; here the cores work together on every batch."""
        self.update_settings(batch_size=batch_size, thread_num=thread_num, use_var=use_var, pipe_command=pipe_command,
                             fs_name=fs_name, fs_ugi=fs_ugi, **kwargs)

    def update_settings(self, **settings):
        """Changes what init() was given."""
        change = {"batch_size": self.set_batch_size, "thread_num": self.set_thread, "use_var": self.set_use_var,
                  "pipe_command": self.set_pipe_command}
        for name, value in settings.items():
            if name in change:
                change[name](value)
            elif name not in _ACCEPTED and name not in _REFUSED:
                raise TypeError(f"{type(self).__name__} has no setting '{name}'")
            elif name in _REFUSED and value:
                raise native.UnsupportedError(f"{type(self).__name__}: {name}={value!r}: {_REFUSED[name]}")

    _init_distributed_settings = update_settings

    def set_batch_size(self, batch_size):
        if int(batch_size) < 1:
            raise ValueError(f"batch_size must be above 0, got {batch_size}")
        self.batch_size = int(batch_size)

    def set_thread(self, thread_num):
        self.thread_num = int(thread_num)

    def set_use_var(self, var_list):
        for v in var_list:
            if v.dtype not in ("float32", "int64"):
                raise native.InvalidArgumentError(f"'{v.name}' is {v.dtype}; data sets hold float32 and int64")
        self.use_var = list(var_list)

    def set_pipe_command(self, pipe_command):
        self.pipe_command = pipe_command

    def set_filelist(self, filelist):
        missing = [f for f in filelist if not os.path.exists(f)]
        if missing:
            raise native.InvalidArgumentError(f"the data set's file {missing[0]} is not there")
        self.filelist = list(filelist)

    # ---- reading ----
    def _lines(self):
        """Samples as bytes, file after file, as pipe_command prints them."""
        if not self.filelist:
            raise native.InvalidArgumentError("the data set has no files: call set_filelist")
        for name in self.filelist:
            with open(name, "rb") as file:
                process = subprocess.Popen(self.pipe_command, shell=True, stdin=file, stdout=subprocess.PIPE)
            try:
                yield from (line.rstrip() + b"\n" for line in process.stdout if line.strip())
            finally:
                process.stdout.close()
                code = process.wait()
            if code != 0:
                raise native.InvalidArgumentError(
                    f"pipe_command '{self.pipe_command}' ended with {code} on {name}; its errors are above")

    def _samples(self):
        return self._lines()

    def _batches(self):
        if not self.use_var:
            raise native.InvalidArgumentError("the data set does not know its slots: give use_var")
        slots = [(v.name, str(v.dtype), -1 if v.lod_level else _width(v)) for v in self.use_var]
        samples = iter(self._samples())
        while lines := list(itertools.islice(samples, self.batch_size)):
            columns = native.parse_multi_slot(b"".join(lines), slots)
            yield {v.name: _value(v, *column) for v, column in zip(self.use_var, columns)}

    def feeds(self):
        """For the executor: feeds, read ahead in the background."""
        return buffered(self._batches, 4)()


def _width(variable):
    """Values of one sample."""
    width = 1
    for d in variable.shape[1:]:
        width *= d
    if width < 0:
        raise native.InvalidArgumentError(
            f"'{variable.name}' of shape {list(variable.shape)}: a data set must know all lengths but the batch, or "
            "lod_level=1")
    return width


def _value(variable, values, lengths):
    array = values.reshape([-1] + [d for d in variable.shape[1:]])
    if not variable.lod_level:
        return array
    tensor = LoDTensor(array)
    tensor.set_recursive_sequence_lengths([lengths.tolist()])
    return tensor


class QueueDataset(DatasetBase):
    """Reads its files anew in every pass."""


class InMemoryDataset(DatasetBase):
    """Keeps its samples, so that they can be shuffled."""

    def __init__(self):
        super().__init__()
        self._memory = None

    def load_into_memory(self, is_shuffle=False):
        self._memory = list(self._lines())
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num=None):
        self.load_into_memory()

    def wait_preload_done(self):
        """load_into_memory and preload_into_memory return when the samples are there."""

    def _loaded(self):
        if self._memory is None:
            raise native.InvalidArgumentError("the data set is not in memory: call load_into_memory()")
        return self._memory

    _samples = _loaded

    def local_shuffle(self):
        random.shuffle(self._loaded())

    def global_shuffle(self, fleet=None, thread_num=12):
        """Deals the samples of all workers out among them, anew."""
        lines = self._loaded()
        if fleet is None or fleet.worker_num() == 1:
            return self.local_shuffle()
        rank, world = fleet.worker_index(), fleet.worker_num()
        draw = random.Random(rank)
        owners = numpy.array([draw.randrange(world) for _ in lines], "int64")
        counts = native.fleet.all_gather(numpy.array([len(lines), sum(map(len, lines))], "int64"))
        mine = []
        for source in range(world):
            text = numpy.zeros(counts[source][1], "uint8")
            owner = numpy.zeros(counts[source][0], "int64")
            if source == rank:
                text, owner = numpy.frombuffer(b"".join(lines), "uint8").copy(), owners
            if len(owner):
                native.fleet.broadcast(text, source)
                native.fleet.broadcast(owner, source)
                mine += [line for line, o in zip(text.tobytes().splitlines(True), owner) if o == rank]
        self._memory = mine
        self.local_shuffle()

    def release_memory(self):
        self._memory = None

    def get_memory_data_size(self, fleet=None):
        return _over_workers(len(self._loaded()), fleet)

    def get_shuffle_data_size(self, fleet=None):
        return self.get_memory_data_size(fleet)


def _over_workers(count, fleet):
    if fleet is None or fleet.worker_num() == 1:
        return count
    return int(fleet.util.all_reduce(numpy.array([count], "int64"))[0])


class DatasetFactory:
    """Of 1.x."""

    def create_dataset(self, datafeed_class="QueueDataset"):
        kinds = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}
        if datafeed_class not in kinds:
            raise ValueError(f"create_dataset: {' or '.join(kinds)}, got {datafeed_class!r}")
        return kinds[datafeed_class]()
