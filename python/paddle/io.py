"""Feeding programs: loaders over generators and over data sets, with batches made ahead in the background."""
import itertools
import math
import threading

import numpy

from paddle import _graph, _refuse
from paddle._executor import EOFException, LoDTensor
from paddle._lod_tensor import FedArray as _FedArray
from paddle._native import native
from paddle.reader import buffered, xmap_readers
from paddle.reader.decorator import Ahead

__all__ = ["DataLoader", "Dataset", "IterableDataset", "TensorDataset", "Sampler", "SequenceSampler", "RandomSampler",
           "BatchSampler", "DistributedBatchSampler", "ChainDataset", "ComposeDataset", "Subset", "random_split",
           "get_worker_info"]


def as_batch(column, variable=None):
    """Values of one field of all samples as one array, in the declared type and shape."""
    if variable is not None and variable.lod_level > 0:
        return _sequences(column, variable)
    name = f"feed '{variable.name}'" if variable is not None else "a batch"
    try:
        array = numpy.asarray(column)
    except ValueError:
        array = None
    if array is None or array.dtype == object:
        shapes = sorted({str(list(numpy.shape(sample))) for sample in column})
        raise native.InvalidArgumentError(
            f"{name}: its samples have different shapes, {' and '.join(shapes[:3])}; pad them in the reader")
    if variable is None:
        return array
    array = array.astype(variable.dtype, copy=False)
    shape = variable.shape
    if array.ndim != len(shape) or any(d >= 0 and d != a for d, a in zip(shape, array.shape)):
        wanted = [array.shape[0]] + [d for d in shape[1:]]
        known = numpy.prod([d for d in wanted if d >= 0], dtype=numpy.int64)
        if wanted.count(-1) == 0 and known == array.size:
            array = array.reshape(wanted)
    return numpy.ascontiguousarray(array)


def _as_fed(batch):
    """Arrays of a batch as scripts know them from the original's loaders."""
    if isinstance(batch, dict):
        return {name: _as_fed(value) for name, value in batch.items()}
    if isinstance(batch, list):
        return [_as_fed(value) for value in batch]
    return batch.view(_FedArray) if type(batch) is numpy.ndarray else batch


def _sequences(column, variable):
    """The sequences of all samples one after the other, with their lengths."""
    row, lengths = [d for d in variable.shape[1:]], []
    for _ in range(variable.lod_level - 1):  # sequences of sequences
        lengths.append([len(sample) for sample in column])
        column = [inner for sample in column for inner in sample]
    parts = [numpy.asarray(sample, variable.dtype).reshape([-1] + row) for sample in column]
    tensor = LoDTensor(numpy.concatenate(parts))
    tensor.set_recursive_sequence_lengths(lengths + [[len(part) for part in parts]])
    return tensor


class GeneratorLoader:
    """What DataLoader.from_generator returns."""

    def __init__(self, feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False,
                 use_multiprocess=False, drop_last=True):
        self._feed_list = _graph.as_list(feed_list)
        self._capacity = capacity or 2
        self._read_ahead = use_double_buffer
        self._iterable, self._return_list = iterable, return_list
        self._batches = None
        self._running = None
        if not iterable:
            if not self._feed_list:
                raise ValueError("DataLoader.from_generator: iterable=False needs a feed_list")
            self._feed_list[0].program.loaders.append(self)

    # ---- where the data comes from ----
    def _set(self, reader, batches):
        if not callable(reader):
            raise TypeError("DataLoader: the reader must be a function that returns an iterator, not "
                            f"a {type(reader).__name__}")
        self._batches = batches
        return self

    def set_sample_generator(self, reader, batch_size, drop_last=True, places=None):
        """`reader` gives one sample at a time."""
        from paddle._batch import batch
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    def set_sample_list_generator(self, reader, places=None):
        """`reader` gives lists of samples, as paddle.batch makes them."""
        def batches():
            for samples in reader():
                columns = list(zip(*[s if isinstance(s, (list, tuple)) else (s,) for s in samples]))
                yield self._columns(columns)
        return self._set(reader, batches)

    def set_batch_generator(self, reader, places=None):
        """`reader` gives whole batches: one array per input, or a dict of them."""
        def batches():
            for arrays in reader():
                if isinstance(arrays, dict):
                    yield arrays
                else:
                    yield self._columns(arrays if isinstance(arrays, (list, tuple)) else [arrays])
        return self._set(reader, batches)

    decorate_sample_generator = set_sample_generator
    decorate_sample_list_generator = decorate_paddle_reader = set_sample_list_generator
    decorate_batch_generator = decorate_tensor_provider = set_batch_generator

    def _columns(self, columns):
        if not self._feed_list:
            return [as_batch(c) for c in columns]
        if len(columns) != len(self._feed_list):
            raise native.InvalidArgumentError(
                f"DataLoader: a sample has {len(columns)} fields, feed_list has {len(self._feed_list)}")
        return {v.name: as_batch(c, v) for v, c in zip(self._feed_list, columns)}

    def _source(self):
        if self._batches is None:
            raise native.InvalidArgumentError(
                "DataLoader: no data; call set_sample_generator, set_sample_list_generator or set_batch_generator")
        return buffered(self._batches, self._capacity) if self._read_ahead else self._batches

    # ---- iterable ----
    def __call__(self):
        return iter(self)

    def __iter__(self):
        if not self._iterable:
            raise native.InvalidArgumentError("this DataLoader was made with iterable=False: use start() and reset()")
        for feed in self._source()():
            feed = _as_fed(feed)
            if self._return_list:
                yield list(feed.values()) if isinstance(feed, dict) else feed
            else:
                yield [feed] if isinstance(feed, dict) else feed

    # ---- start and reset ----
    def start(self):
        if self._iterable:
            raise native.InvalidArgumentError("start() is for a DataLoader with iterable=False; iterate over this one")
        self.reset()
        batches = self._source()
        self._running = Ahead(self._batches, self._capacity) if self._read_ahead else batches()

    def reset(self):
        if self._running is not None:
            self._running.close()
        self._running = None

    is_started = property(lambda self: self._running is not None)

    @property
    def queue(self):
        """What holds the batches that are ready: `queue.size()`."""
        return self

    def size(self):
        """How many batches are ready, of a loader that was started."""
        return self._running.size() if isinstance(self._running, Ahead) else 0

    def next_feed(self):
        """For the executor: the next batch."""
        if self._running is None:
            raise native.InvalidArgumentError("the program reads from a DataLoader that was not started: call start()")
        for feed in self._running:
            return feed
        self._running = None
        raise EOFException("There is no next data.")


PyReader = GeneratorLoader


# ---- data sets ----
class Dataset:
    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __len__")


class IterableDataset(Dataset):
    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")

    def __getitem__(self, index):
        raise RuntimeError("an IterableDataset is read in its own order")

    __len__ = None


class TensorDataset(Dataset):
    def __init__(self, tensors):
        self.tensors = [numpy.asarray(t) for t in tensors]

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return len(self.tensors[0])


class ChainDataset(IterableDataset):
    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __iter__(self):
        return itertools.chain(*self.datasets)


class ComposeDataset(Dataset):
    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __len__(self):
        return len(self.datasets[0])

    def __getitem__(self, index):
        out = []
        for d in self.datasets:
            sample = d[index]
            out.extend(sample if isinstance(sample, (list, tuple)) else [sample])
        return tuple(out)


class Subset(Dataset):
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, list(indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Parts of these lengths, chosen by NumPy's random numbers; a generator is refused."""
    if generator is not None:
        raise native.UnsupportedError("random_split: generator must be None; numpy.random.seed fixes the choice")
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: the lengths add up to {sum(lengths)}, the data set has {len(dataset)}")
    order = numpy.random.permutation(len(dataset)).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - n:end]) for end, n in zip(ends, lengths)]


# ---- samplers ----
class Sampler:
    def __init__(self, data_source=None):
        self.data_source = data_source

    def __len__(self):
        return len(self.data_source)


class SequenceSampler(Sampler):
    def __iter__(self):
        return iter(range(len(self.data_source)))


class RandomSampler(Sampler):
    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        super().__init__(data_source)
        self.replacement, self.num_samples = replacement, num_samples or len(data_source)
        self.generator = generator  # an iterator over indices

    def __iter__(self):
        n = len(self.data_source)
        if self.generator is not None:
            return itertools.islice(iter(self.generator), self.num_samples)
        if self.replacement:
            return iter(numpy.random.randint(0, n, self.num_samples).tolist())
        return iter(numpy.random.permutation(n)[:self.num_samples].tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    def __init__(self, dataset=None, sampler=None, shuffle=False, batch_size=1, drop_last=False):
        if (dataset is None) == (sampler is None):
            raise ValueError("BatchSampler: give either dataset or sampler")
        self.sampler = sampler or (RandomSampler(dataset) if shuffle else SequenceSampler(dataset))
        self.batch_size, self.drop_last = batch_size, drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)


class DistributedBatchSampler(BatchSampler):
    """Every worker's share: the samples are padded to a multiple of the workers by wrapping around."""

    def __init__(self, dataset, batch_size, num_replicas=None, rank=None, shuffle=False, drop_last=False):
        from paddle import distributed
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.nranks = distributed.get_world_size() if num_replicas is None else num_replicas
        self.local_rank = distributed.get_rank() if rank is None else rank
        self.epoch = 0
        self.num_samples = math.ceil(len(dataset) / self.nranks)

    def __iter__(self):
        order = numpy.arange(len(self.dataset))
        if self.shuffle:
            numpy.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        total = self.num_samples * self.nranks
        order = numpy.resize(order, total)[self.local_rank:total:self.nranks].tolist()
        for start in range(0, len(order), self.batch_size):
            batch = order[start:start + self.batch_size]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        n = self.num_samples
        return n // self.batch_size if self.drop_last else math.ceil(n / self.batch_size)

    def set_epoch(self, epoch):
        self.epoch = epoch


class WorkerInfo:
    def __init__(self, id, num_workers, dataset):
        self.id, self.num_workers, self.dataset = id, num_workers, dataset


_worker = threading.local()


def get_worker_info():
    """Of the worker of a DataLoader that calls it; None elsewhere."""
    return getattr(_worker, "info", None)


def _collate(samples):
    first = samples[0]
    if isinstance(first, dict):
        return {k: numpy.asarray([s[k] for s in samples]) for k in first}
    if isinstance(first, (list, tuple)):
        return [numpy.asarray(column) for column in zip(*samples)]
    return [numpy.asarray(samples)]


class DataLoader:
    """Batches of a data set, made ahead: by `num_workers` threads, each a batch at a time; by one where it is 0. (Threads
    help as far as samples come from NumPy, files and decoders, which let others run.) An IterableDataset is read by
    one."""

    def __init__(self, dataset, feed_list=None, places=None, return_list=False, batch_sampler=None, batch_size=1,
                 shuffle=False, drop_last=False, collate_fn=None, num_workers=0, use_buffer_reader=True,
                 use_shared_memory=True, timeout=0, worker_init_fn=None, persistent_workers=False):
        self.dataset, self._feed_list, self.return_list = dataset, _graph.as_list(feed_list), return_list
        self._iterable_set = isinstance(dataset, IterableDataset)
        self.batch_size, self.drop_last, self.num_workers = batch_size, drop_last, num_workers
        self.collate_fn, self._init_worker = collate_fn or _collate, worker_init_fn
        self._read_ahead = use_buffer_reader or num_workers > 0
        self.batch_sampler = batch_sampler
        if batch_sampler is None and not self._iterable_set and batch_size is not None:
            self.batch_sampler = BatchSampler(dataset, None, shuffle, batch_size, drop_last)

    @staticmethod
    def from_generator(feed_list=None, capacity=None, use_double_buffer=True, iterable=True, return_list=False,
                       use_multiprocess=False, drop_last=True):
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, use_multiprocess,
                               drop_last)

    @staticmethod
    def from_dataset(dataset, places, drop_last=True):
        raise _refuse.refuse("paddle.io.DataLoader.from_dataset", "DataLoader.from_generator")

    def _samples(self):
        if self._iterable_set:
            source = iter(self.dataset)
            while samples := list(itertools.islice(source, self.batch_size)):
                if len(samples) == self.batch_size or not self.drop_last:
                    yield samples
        else:
            for indices in self.batch_sampler:
                yield [self.dataset[i] for i in indices]

    def _batch(self, samples):
        columns = self.collate_fn(samples)
        if self._feed_list and not self.return_list:
            return [_as_fed({v.name: as_batch(c, v) for v, c in zip(self._feed_list, columns)})]
        return _as_fed(columns)

    def _batches(self):
        return map(self._batch, self._samples())

    def _by_workers(self):
        numbers = itertools.count()

        def make(indices):
            if get_worker_info() is None:  # a thread's first batch
                _worker.info = WorkerInfo(next(numbers), self.num_workers, self.dataset)
                if self._init_worker is not None:
                    self._init_worker(_worker.info.id)
            return self._batch([self.dataset[i] for i in indices])
        return xmap_readers(make, lambda: iter(self.batch_sampler), self.num_workers, 2 * self.num_workers, order=True)()

    def __iter__(self):
        if self.num_workers > 0 and not self._iterable_set:
            return self._by_workers()
        return (buffered(self._batches, 2) if self._read_ahead else self._batches)()

    def __call__(self):
        return iter(self)

    def __len__(self):
        if self._iterable_set:
            raise TypeError("the length of an IterableDataset is not known")
        return len(self.batch_sampler)


__getattr__ = _refuse.getter(__name__, {"WeightedRandomSampler": "RandomSampler", "ConcatDataset": "ChainDataset",
                                        "SubsetRandomSampler": "RandomSampler"})
