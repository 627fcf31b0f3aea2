"""Feeds from files of samples. C++ threads read, parse and batch them (fleetx/data)."""
import glob
import os
import random
from typing import Dict, Iterator, Optional, Sequence, Type, Union

import numpy

from fleetx import _job
from paddle import static
from paddle._native import native
from paddle.distributed.fleet.dataset import DatasetBase, QueueDataset

POOL = 100  # batches that are shuffled together, as in the original


class SampleLoader:
    """Iterates over {input: array} of `batch_size` samples, what Executor.run takes as feed; one iteration is one pass.
    `loader` and `loader()` are the same. Files are divided among the workers, the first ones get one more where it does
    not come out even; with fewer files than workers, each takes every n-th line of all files.

    shuffle -- another order in every pass: of the files, and of the samples among every 100 batches
    """

    def __init__(self, path: Union[str, os.PathLike, Sequence[str]], inputs: Sequence[static.Variable],
                 batch_size: int = 1000, shuffle: bool = True, data_format: str = "multi_slot", ids: Optional[int] = None,
                 thread_num: int = 1, on_damaged: str = "raise"):
        self.files, self.inputs = _files(path), list(inputs)
        self.batch_size, self.shuffle, self.thread_num = int(batch_size), shuffle, thread_num
        self.data_format, self.ids, self.on_damaged = data_format, ids, on_damaged
        self._pass = 0
        self.dataset()  # finds mistakes now

    def dataset(self, kind: Type[DatasetBase] = QueueDataset) -> DatasetBase:
        """This worker's share as a data set for Executor.train_from_dataset (`kind`: or InMemoryDataset)."""
        index, count = _job.worker()
        dataset = kind()
        dataset.init(self.batch_size, self.thread_num, self.inputs)
        dataset.set_data_format(self.data_format, self.ids)
        dataset.set_bad_line_policy(self.on_damaged)
        if len(self.files) < count:
            dataset.set_line_share(index, count)
        dataset.set_filelist(self.files if len(self.files) < count else native.get_file_shard(self.files, index, count))
        return dataset

    def __call__(self) -> "SampleLoader":
        return self

    def __iter__(self) -> Iterator[Dict[str, numpy.ndarray]]:
        dataset, number = self.dataset(), self._pass
        self._pass += 1
        if not self.shuffle:
            return dataset.feeds()
        random.Random(number).shuffle(dataset.filelist)
        return dataset.shuffled_feeds(POOL * self.batch_size, number)


def _files(path):
    """Of a file, a folder of files or a list of files."""
    if isinstance(path, (list, tuple)):
        files = [os.fspath(p) for p in path]
    elif os.path.isdir(path):
        files = sorted(f for f in glob.glob(os.path.join(os.fspath(path), "*")) if os.path.isfile(f))
    else:
        files = [os.fspath(path)]
    if not files:
        raise native.InvalidArgumentError(f"there are no files of samples in {path}")
    return files
