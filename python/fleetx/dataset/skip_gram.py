"""Pairs of neighbouring words, with words drawn at random beside them, from lines of ids."""
import itertools
import os
import shlex
import sys
import zlib

import numpy

from fleetx import _job
from paddle._native import native
from paddle.distributed.fleet.dataset import QueueDataset

LINES = 1000  # whose pairs are made at once


class SkipGram:
    """Draws windows and negatives: those of a batch are shared by its pairs. The same seed gives the same pairs."""

    def __init__(self, dict_path, window_size, batch_size, nce_num, seed=0):
        for name, value in (("window_size", window_size), ("batch_size", batch_size), ("nce_num", nce_num)):
            if int(value) < 1:
                raise native.InvalidArgumentError(f"skip-gram: {name} must be above 0, got {value}")
        self.window_size, self.batch_size, self.nce_num = int(window_size), int(batch_size), int(nce_num)
        weights = _counts(dict_path) ** 0.75
        self._up_to = numpy.cumsum(weights / weights.sum())
        self._random = numpy.random.RandomState(seed % 2**32)

    def batches(self, lines):
        """(words, neighbours, negatives) of batch_size pairs each; the last may have fewer."""
        words = near = numpy.empty(0, "int64")
        lines = iter(lines)
        while some := list(itertools.islice(lines, LINES)):
            new_words, new_near = self._pairs(some)
            words, near = numpy.append(words, new_words), numpy.append(near, new_near)
            whole = len(words) // self.batch_size * self.batch_size
            for at in range(0, whole, self.batch_size):
                yield words[at:at + self.batch_size], near[at:at + self.batch_size], self._negatives()
            words, near = words[whole:], near[whole:]
        if len(words):
            yield words, near, self._negatives()

    def _negatives(self):
        # The sum may be a little below 1.
        return numpy.minimum(self._up_to.searchsorted(self._random.random_sample(self.nce_num)), len(self._up_to) - 1)

    def _pairs(self, lines):
        """All words of a line with those around them: distance by distance, for all lines at once."""
        texts = [line.split() for line in lines]
        line_of = numpy.repeat(numpy.arange(len(texts)), [len(t) for t in texts])
        words = _ids([word for text in texts for word in text], len(self._up_to))
        windows = self._random.randint(1, self.window_size + 1, len(words))
        found, order = [], []
        for distance in range(1, self.window_size + 1):
            place = numpy.arange(len(words) - distance)
            together = line_of[place] == line_of[place + distance]
            for centre, near in ((place, place + distance), (place + distance, place)):
                kept = together & (windows[centre] >= distance)
                found.append(numpy.stack([words[centre[kept]], words[near[kept]]]))
                order.append(centre[kept])
        found = numpy.concatenate(found, axis=1)
        return found[:, numpy.argsort(numpy.concatenate(order), kind="stable")]


def _counts(dict_path):
    counts = []
    with open(dict_path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            parts = line.split()
            if len(parts) < 2 or not parts[1].isdigit():
                raise native.CorruptFileError(f"{dict_path}:{number}: expected `word count`, got {line.rstrip()!r:.60}")
            counts.append(int(parts[1]))
    if not sum(counts):
        raise native.CorruptFileError(f"{dict_path}: the dictionary has no words")
    return numpy.array(counts, "float64")


def _ids(words, size):
    try:
        ids = numpy.array(words, "int64")
    except ValueError:
        bad = next(w for w in words if not w.lstrip("-").isdigit())
        raise native.CorruptFileError(f"'{bad:.40}' is not the id of a word; lines hold ids of the dictionary") from None
    if len(ids) and not 0 <= ids.min() <= ids.max() < size:
        bad = ids.min() if ids.min() < 0 else ids.max()
        raise native.CorruptFileError(f"word {bad} is not in the dictionary, which has {size}")
    return ids


class SkipGramLoader:
    """Feeds of `batch_size` pairs; one iteration is one pass. `loader` and `loader()` are the same. A worker takes its share
    of the files; with fewer files than workers, every n-th line of all."""

    def __init__(self, names, dict_path, file_list, nce_num, window_size, batch_size, seed=0):
        self.names, self.files = list(names), [os.fspath(f) for f in file_list]
        self._make = lambda seed: SkipGram(dict_path, window_size, batch_size, nce_num, seed)
        self._seed, self._pass = seed, 0
        self._make(seed)  # finds mistakes now

    def _lines(self):
        index, count = _job.worker()
        shared = len(self.files) < count
        for name in self.files if shared else native.get_file_shard(self.files, index, count):
            with open(name, encoding="utf-8") as file:
                yield from itertools.islice(file, index, None, count) if shared else file

    def __call__(self):
        return self

    def __iter__(self):
        self._pass += 1
        for words, near, negatives in self._make(self._seed + self._pass - 1).batches(self._lines()):
            values = words.reshape(-1, 1), near.reshape(-1, 1), numpy.tile(negatives, (len(words), 1))
            yield dict(zip(self.names, values))


def load_dataset(inputs, dict_path, file_list, nce_num, window_size, batch_size, thread_num, seed):
    """A QueueDataset whose files go through print_pairs()."""
    SkipGram(dict_path, window_size, batch_size, nce_num)  # finds mistakes now
    call = f"print_pairs({os.path.abspath(dict_path)!r}, {window_size}, {batch_size}, {nce_num}, {seed})"
    command = [sys.executable, "-c", f"from fleetx.dataset.skip_gram import print_pairs; {call}"]
    dataset = QueueDataset()
    dataset.init(batch_size, thread_num, inputs, shlex.join(command))
    dataset.set_filelist(list(file_list))
    return dataset


def print_pairs(dict_path, window_size, batch_size, nce_num, seed):
    """MultiSlot samples of the lines on stdin. Two files have different random numbers: their first lines choose them."""
    first = sys.stdin.readline()
    pairs = SkipGram(dict_path, window_size, batch_size, nce_num, seed + zlib.crc32(first.encode()))
    for words, near, negatives in pairs.batches(itertools.chain([first], sys.stdin)):
        end = " ".join(map(str, [len(negatives), *negatives]))
        sys.stdout.write("".join(f"1 {a} 1 {b} {end}\n" for a, b in zip(words.tolist(), near.tolist())))
