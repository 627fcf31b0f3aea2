"""Film reviews: (list of word ids, 0 positive or 1 negative)."""
import collections
import re
import string
import tarfile

import numpy

from paddle.dataset import common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVE = "aclImdb_v1.tar.gz"
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_MADE_UP = 500  # reviews of each kind and part


def _made_up(pattern):
    """Reviews whose words lean to one side."""
    words = [f"word{i}" for i in range(200)]
    rising = numpy.arange(1, 201, dtype="float64")
    for part in ("train", "test"):
        for kind in ("pos", "neg"):
            if part not in pattern.pattern or kind not in pattern.pattern:
                continue
            rng = numpy.random.RandomState({"train": 0, "test": 1}[part] * 2 + (kind == "pos"))
            weights = rising if kind == "pos" else rising[::-1]
            for _ in range(_MADE_UP):
                yield rng.choice(words, rng.randint(20, 80), p=weights / weights.sum()).tolist()


def tokenize(pattern):
    """The words of every review whose path matches."""
    path = common.find("imdb", _ARCHIVE)
    if path is None:
        common.announce("imdb", _ARCHIVE, f"A MADE-UP set of {4 * _MADE_UP} reviews of 200 words takes its place.")
        yield from _made_up(pattern)
        return
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and pattern.match(member.name):
                text = archive.extractfile(member).read().decode("utf-8", "replace")
                yield text.rstrip("\r\n").translate(_PUNCTUATION).lower().split()


def build_dict(pattern, cutoff):
    """Words that occur more than `cutoff` times, by frequency; the last id is <unk>."""
    counts = collections.Counter()
    for words in tokenize(pattern):
        counts.update(words)
    kept = sorted(((w, n) for w, n in counts.items() if n > cutoff), key=lambda item: (-item[1], item[0]))
    ids = {word: i for i, (word, _) in enumerate(kept)}
    ids["<unk>"] = len(ids)
    return ids


def word_dict(cutoff=150):
    return build_dict(re.compile(r"aclImdb/((train)|(test))/((pos)|(neg))/.*\.txt$"), cutoff)


def _reader(part, word_idx):
    unknown = word_idx["<unk>"]

    def read():
        for label, kind in enumerate(("pos", "neg")):
            for words in tokenize(re.compile(rf"aclImdb/{part}/{kind}/.*\.txt$")):
                yield [word_idx.get(w, unknown) for w in words], label
    return read


def train(word_idx):
    return _reader("train", word_idx)


def test(word_idx):
    return _reader("test", word_idx)
