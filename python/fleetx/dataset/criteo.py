"""Lines of the Criteo display advertising data: label, 13 numbers, 26 words, separated by tabs."""
import random
import zlib

import numpy

from fleetx import _job
from paddle._native import native

NUMBERS, WORDS = 13, 26
# Of the numbers in the whole data set: x becomes (x - least) / range.
LEAST = numpy.array([0, -3] + [0] * 11, "float32")
RANGE = numpy.array([20, 603, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50], "float32")


class CriteoLoader:
    """Feeds of `batch_size` samples. Files are divided among the workers, the first ones get one more where it does not
    come out even; with fewer files than workers, each takes every world-th line of all files."""

    def __init__(self, files, names, ids, batch_size, shuffle=False):
        if len(names) != 1 + WORDS + 1:
            raise native.InvalidArgumentError(f"criteo: {len(names)} inputs; expected the numbers, {WORDS} slots and the label")
        if batch_size < 1:
            raise native.InvalidArgumentError(f"criteo: batch_size must be above 0, got {batch_size}")
        self.files, self.names, self.ids = files, list(names), int(ids)
        self.batch_size, self.shuffle, self._pass = int(batch_size), shuffle, 0

    def _lines(self):
        rank, world = _job.rank(), _job.world()
        shared = len(self.files) < world
        files = list(self.files) if shared else native.get_file_shard(self.files, rank, world)
        if self.shuffle:
            random.Random(self._pass).shuffle(files)
        for name in files:
            with open(name, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    if not shared or number % world == rank:
                        yield name, number, line.rstrip("\n")

    def _sample(self, name, number, line):
        parts = line.split("\t")
        if len(parts) != 1 + NUMBERS + WORDS:
            raise native.CorruptFileError(f"{name}:{number}: {len(parts)} fields; expected {1 + NUMBERS + WORDS}")
        try:
            label = int(parts[0])
            numbers = [float(x) if x else 0.0 for x in parts[1:1 + NUMBERS]]
        except ValueError as error:
            raise native.CorruptFileError(f"{name}:{number}: {error}") from None
        # The slot is part of the word, so that equal words of two slots are two ids.
        words = [zlib.crc32(f"{slot}{word}".encode()) % self.ids for slot, word in enumerate(parts[1 + NUMBERS:], 1)]
        return numbers, words, label

    def _feed(self, samples):
        numbers = (numpy.array([s[0] for s in samples], "float32") - LEAST) / RANGE
        words = numpy.array([s[1] for s in samples], "int64")
        label = numpy.array([[s[2]] for s in samples], "int64")
        return dict(zip(self.names, [numbers, *(words[:, i:i + 1].copy() for i in range(WORDS)), label]))

    def __iter__(self):
        samples = []
        for line in self._lines():
            samples.append(self._sample(*line))
            if len(samples) == self.batch_size:
                yield self._feed(samples)
                samples = []
        if samples:
            yield self._feed(samples)
        self._pass += 1
