"""Text of the Penn treebank for language models: n-grams of word ids, or sequences."""
import collections
import tarfile

import numpy

from paddle._native import native
from paddle.dataset import common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVE = "simple-examples.tgz"
_PARTS = {"train": "ptb.train.txt", "test": "ptb.valid.txt"}
_MADE_UP = {"train": 4000, "test": 200}
_WORDS = 320  # most of them often enough for a dictionary: scripts ask for single ids of it


class DataType:
    NGRAM = 1
    SEQ = 2


def _made_up(part):
    """Sentences of a grammar in which a word mostly says the next one."""
    rng = numpy.random.RandomState({"train": 1, "test": 2}[part])
    following = numpy.random.RandomState(0).randint(0, _WORDS, (_WORDS, 3))
    for _ in range(_MADE_UP[part]):
        word, sentence = int(rng.randint(_WORDS)), []
        for _ in range(rng.randint(6, 20)):
            sentence.append(f"word{word}")
            word = int(following[word, rng.choice(3, p=[0.8, 0.15, 0.05])])
        yield sentence


def _sentences(part):
    path = common.find("imikolov", _ARCHIVE)
    if path is None:
        common.announce("imikolov", _ARCHIVE, f"A MADE-UP set of {_MADE_UP['train']} sentences of {_WORDS} words takes its "
                        "place.")
        yield from _made_up(part)
        return
    with tarfile.open(path) as archive:
        member = next((m for m in archive if m.name.endswith("data/" + _PARTS[part])), None)
        if member is None:
            raise native.CorruptFileError(f"{path} has no {_PARTS[part]}")
        for line in archive.extractfile(member):
            yield line.decode("utf-8", "replace").split()


def build_dict(min_word_freq=50):
    """Words that occur more than so many times in both parts, by frequency; <s>, <e> mark begin and end; the last id is
    <unk>."""
    counts = collections.Counter()
    for part in _PARTS:
        for words in _sentences(part):
            counts.update(["<s>", *words, "<e>"])
    counts.pop("<unk>", None)
    kept = sorted(((w, n) for w, n in counts.items() if n > min_word_freq), key=lambda item: (-item[1], item[0]))
    ids = {word: i for i, (word, _) in enumerate(kept)}
    ids["<unk>"] = len(ids)
    return ids


def _reader(part, word_idx, n, data_type):
    if data_type == DataType.NGRAM and n < 1:
        raise ValueError(f"imikolov: n-grams need n of at least 1, got {n}")
    unknown = word_idx["<unk>"]

    def read():
        for words in _sentences(part):
            if data_type == DataType.NGRAM:
                ids = [word_idx.get(w, unknown) for w in ("<s>", *words, "<e>")]
                yield from (tuple(ids[i - n:i]) for i in range(n, len(ids) + 1))
            elif data_type == DataType.SEQ:
                ids = [word_idx.get(w, unknown) for w in words]
                if n <= 0 or len(ids) + 1 <= n:
                    yield [word_idx.get("<s>", unknown), *ids], [*ids, word_idx.get("<e>", unknown)]
            else:
                raise ValueError(f"imikolov: data_type must be DataType.NGRAM or DataType.SEQ, got {data_type!r}")
    return read


def train(word_idx, n, data_type=DataType.NGRAM):
    """N-grams of n words; of SEQ, (ids from <s>, ids to <e>) of sentences of at most n."""
    return _reader("train", word_idx, n, data_type)


def test(word_idx, n, data_type=DataType.NGRAM):
    return _reader("test", word_idx, n, data_type)
