"""Data sets of sample files for Executor.train_from_dataset. C++ reads, parses, batches and shuffles them
(fleetx/data/batches.h); docs/data.md has the formats."""
import itertools
import os

import numpy

from paddle import _graph
from paddle._executor import LoDTensor
from paddle._native import native

__all__ = ["DatasetBase", "InMemoryDataset", "QueueDataset"]


# Settings of the original: how it hands batches to its threads, and what changes the samples.
_ACCEPTED = {"input_type", "download_cmd", "queue_num", "data_feed_type", "merge_size", "fleet_send_batch_size",
             "fleet_send_sleep_seconds", "fea_eval", "candidate_size"}
_HDFS = "data sets on HDFS are not here; fetch the files first, with fleet.utils.HDFSClient"
_FORM = "lines hold the slots of use_var and nothing else here"
_REFUSED = {"fs_name": _HDFS, "fs_ugi": _HDFS, "parse_ins_id": _FORM, "parse_content": _FORM, "parse_logkey": _FORM,
            "enable_pv_merge": _FORM, "merge_by_sid": _FORM, "merge_by_lineid": _FORM}


class DatasetBase:
    def __init__(self):
        self.use_var, self.filelist = [], None
        self.pipe_command, self.batch_size, self.thread_num = "cat", 1, 1
        self.data_format, self.ids, self.bad_line_policy = "multi_slot", 1_000_001, "raise"
        self.line_share = (0, 1)
        self.skipped_lines = 0  # in the last pass that came to its end

    def init(self, batch_size=1, thread_num=1, use_var=(), pipe_command="cat", input_type=0, fs_name="", fs_ugi="",
             download_cmd="cat", **kwargs):
        """thread_num: threads that read. With one, samples come in the order of the files; with n, thread t reads files t,
        t + n, ..., and batches are taken from the threads in turn. (The cores work together on every batch.)"""
        self.update_settings(batch_size=batch_size, thread_num=thread_num, use_var=use_var, pipe_command=pipe_command,
                             fs_name=fs_name, fs_ugi=fs_ugi, **kwargs)

    def update_settings(self, **settings):
        """Changes what init() was given."""
        change = {"batch_size": self.set_batch_size, "thread_num": self.set_thread, "use_var": self.set_use_var,
                  "pipe_command": self.set_pipe_command, "data_format": self.set_data_format,
                  "bad_line_policy": self.set_bad_line_policy}
        for name, value in settings.items():
            if name in change:
                change[name](value)
            elif name not in _ACCEPTED and name not in _REFUSED:
                raise TypeError(f"{type(self).__name__} has no setting '{name}'")
            elif name in _REFUSED and value:
                raise native.UnsupportedError(f"{type(self).__name__}: {name}={value!r}: {_REFUSED[name]}")

    _init_distributed_settings = update_settings

    def desc(self):
        """The settings, as text."""
        slots = "".join(f"slot: {v.name} {v.dtype} {[int(d) for d in v.shape]}\n" for v in self.use_var)
        return (f"name: {type(self).__name__}\nbatch_size: {self.batch_size}\nthread_num: {self.thread_num}\n"
                f"pipe_command: {self.pipe_command}\n{slots}")

    def set_hdfs_config(self, fs_name, fs_ugi):
        self.update_settings(fs_name=fs_name, fs_ugi=fs_ugi)

    def set_fea_eval(self, record_candidate_size, fea_eval=True):
        """For slots_shuffle, which is not here."""
        self.update_settings(candidate_size=record_candidate_size, fea_eval=fea_eval)

    def slots_shuffle(self, slots):
        raise native.UnsupportedError(f"{type(self).__name__}.slots_shuffle({slots!r}): samples are shuffled as a whole here: "
                                      "local_shuffle, global_shuffle")

    def set_batch_size(self, batch_size):
        if int(batch_size) < 1:
            raise ValueError(f"batch_size must be above 0, got {batch_size}")
        self.batch_size = int(batch_size)

    def set_thread(self, thread_num):
        self.thread_num = max(1, int(thread_num))

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
        self.filelist = [os.fspath(f) for f in filelist]

    def set_data_format(self, data_format, ids=None):
        """Of text: "multi_slot", "criteo" (its words become numbers below `ids`) or "libsvm". Not in the original."""
        self.data_format, self.ids = data_format, self.ids if ids is None else int(ids)

    def set_bad_line_policy(self, policy):
        """"raise": a damaged line is an error. "skip": it is left out; a warning at the end of a pass says how many were,
        and so does skipped_lines. Not in the original."""
        if policy not in ("raise", "skip"):
            raise ValueError(f"bad_line_policy is {policy!r}; known: 'raise', 'skip'")
        self.bad_line_policy = policy

    def set_line_share(self, index, count):
        """Of every file, reads line `index` (from 0 on) and every count-th after it: for workers that are more than the files.
        Not in the original."""
        if not 0 <= index < count:
            raise ValueError(f"set_line_share: index must be from 0 to count - 1, got {index} of {count}")
        self.line_share = (int(index), int(count))

    # ---- reading ----
    def _read(self, batch_size):
        if not self.filelist:
            raise native.InvalidArgumentError(
                "the data set has no files: call set_filelist" if self.filelist is None else
                "the data set has no files: set_filelist got an empty list. Of fewer files than workers, get_file_shard gives "
                "some none; give all files to each and divide their lines: "
                "set_line_share(fleet.worker_index(), fleet.worker_num())")
        if not self.use_var:
            raise native.InvalidArgumentError("the data set does not know its slots: give use_var")
        slots = [(v.name, str(v.dtype), -1 if v.lod_level else _width(v)) for v in self.use_var]
        return native.read_files(files=self.filelist, slots=slots, format=self.data_format, ids=self.ids,
                                 command=self.pipe_command, batch=batch_size, threads=self.thread_num,
                                 skip_bad_lines=self.bad_line_policy == "skip", share=self.line_share)

    def _open(self):
        """Batches of a pass, as the executor wants them."""
        return self._read(self.batch_size)

    def _ended(self, batches):
        self.skipped_lines = batches.skipped()

    def feeds(self):
        """The batches of a pass as feeds for Executor.run."""
        batches = self._open()
        try:
            yield from self._feeds_of(batches)
            self._ended(batches)
        finally:
            batches.close()

    def shuffled_feeds(self, pool, seed=0):
        """feeds(), in a random order among any `pool` samples that follow each other. Not in the original."""
        batches = self._open()
        try:
            for number in itertools.count():
                store = native.SampleStore.load(batches, max(pool, 1))
                if store.size == 0:
                    break
                store.shuffle(seed, number)
                part = store.batches(self.batch_size)
                try:
                    yield from self._feeds_of(part)
                finally:
                    part.close()
            self._ended(batches)
        finally:
            batches.close()

    def _feeds_of(self, batches):
        while (columns := batches.next()) is not None:
            yield {v.name: _value(v, *column) for v, column in zip(self.use_var, columns)}


def _setter(setting):
    """A method of 1.x for one setting of init()."""
    def change(self, value=True):
        self.update_settings(**{setting: value})
    change.__name__ = f"set_{setting}"
    return change


for _name in ("queue_num", "fleet_send_batch_size", "fleet_send_sleep_seconds", "download_cmd", "data_feed_type", "parse_ins_id",
              "parse_content", "parse_logkey", "enable_pv_merge", "merge_by_sid", "merge_by_lineid"):
    setattr(DatasetBase, f"set_{_name}", _setter(_name))


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
        self._memory, self._seed, self._shuffles = None, 0, 0

    def set_shuffle_seed(self, seed):
        """The same seed, files and calls give the same orders. Not in the original."""
        self._seed, self._shuffles = int(seed) % 2**64, 0

    def load_into_memory(self, is_shuffle=False):
        batches = self._read(4096)
        try:
            self._memory = native.SampleStore.load(batches)
            super()._ended(batches)
        finally:
            batches.close()
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num=None):
        if thread_num:
            self.set_thread(thread_num)
        self.load_into_memory()

    def wait_preload_done(self):
        """load_into_memory and preload_into_memory return when the samples are there."""

    def _loaded(self):
        if self._memory is None:
            raise native.InvalidArgumentError("the data set is not in memory: call load_into_memory()")
        return self._memory

    def _open(self):
        return self._loaded().batches(self.batch_size)

    def _ended(self, batches):
        """A pass over the memory skips nothing: what loading skipped stays known."""

    def _next_shuffle(self):
        self._shuffles += 1
        return self._shuffles - 1

    def local_shuffle(self):
        self._loaded().shuffle(self._seed, self._next_shuffle())

    def global_shuffle(self, fleet=None, thread_num=12):
        """Deals the samples of all workers out among them, anew."""
        if fleet is None or fleet.worker_num() == 1:
            return self.local_shuffle()
        self._memory = self._loaded().dealt_out(self._seed, self._next_shuffle())

    def release_memory(self):
        self._memory = None

    def get_memory_data_size(self, fleet=None):
        return _over_workers(self._loaded().size, fleet)

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
