"""Who does what to whom: nine lists of ids for each verb of a sentence (words; the words two and one before the verb, the
verb, one and two after it, each for every word; the verb; is it within those five?; labels)."""
import atexit
import gzip
import itertools
import os
import shutil
import tarfile
import tempfile

import numpy

from paddle._native import native
from paddle.dataset import common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVE = "conll05st-tests.tar.gz"
_DICTIONARIES = ("wordDict.txt", "verbDict.txt", "targetDict.txt")
_MADE_UP = 500
UNK_IDX = 0


def _made_up():
    """Somebody, a verb, something, and where it happens."""
    rng = numpy.random.RandomState(5)
    for _ in range(_MADE_UP):
        who, what, where = (f"{kind}{rng.randint(20)}" for kind in ("person", "thing", "place"))
        verb = f"verb{rng.randint(10)}"
        words = ["the", who, verb, "a", what, "in", where]
        yield words, verb, ["B-A0", "I-A0", "B-V", "B-A1", "I-A1", "B-LOC", "I-LOC"]


def _unfolded(column):
    """(A0*, *, *) -> B-A0, I-A0, I-A0; outside of brackets: O."""
    labels, inside = [], None
    for mark in column:
        if mark.startswith("("):
            inside = mark[1:mark.index("*")]
            labels.append("B-" + inside)
        else:
            labels.append("I-" + inside if inside else "O")
        if mark.endswith(")"):
            inside = None
    return labels


def _blocks(lines):
    """Lists of split lines between empty ones."""
    for is_empty, group in itertools.groupby((line.split() for line in lines), lambda fields: not fields):
        if not is_empty:
            yield list(group)


def _archived(path):
    def text(archive, ending):
        member = next((m for m in archive if m.name.endswith(ending)), None)
        if member is None:
            raise native.CorruptFileError(f"{path} has no {ending}")
        return gzip.decompress(archive.extractfile(member).read()).decode("utf-8", "replace").splitlines()

    with tarfile.open(path) as archive:
        words, properties = text(archive, "test.wsj.words.gz"), text(archive, "test.wsj.props.gz")
    for sentence, rows in zip(_blocks(words), _blocks(properties), strict=True):
        verbs = [row[0] for row in rows if row[0] != "-"]
        for number, verb in enumerate(verbs):
            try:
                yield [fields[0] for fields in sentence], verb, _unfolded([row[number + 1] for row in rows])
            except (IndexError, ValueError):
                raise native.CorruptFileError(f"{path}: the marks of {' '.join(f[0] for f in sentence):.60} do not fit it") from None


def _sentences():
    path = common.find("conll05st", _ARCHIVE)
    if path is None:
        common.announce("conll05", _ARCHIVE, f"A MADE-UP set of {_MADE_UP} sentences takes its place.")
        return _made_up()
    return _archived(path)


def _read_dictionary(path):
    with open(path, encoding="utf-8") as file:
        return {line.strip(): i for i, line in enumerate(file)}


def _labels_of(path):
    """{B-X, I-X, ..., O: id} of a list of labels."""
    with open(path, encoding="utf-8") as file:
        kinds = sorted({line.strip()[2:] for line in file if line.strip()[:2] in ("B-", "I-")})
    return _label_ids(kinds)


def _label_ids(kinds):
    ids = {}
    for kind in kinds:
        ids["B-" + kind], ids["I-" + kind] = len(ids), len(ids) + 1
    ids["O"] = len(ids)
    return ids


def get_dict():
    """({word: id}, {verb: id}, {label: id})."""
    paths = [common.find("conll05st", name) for name in _DICTIONARIES]
    if all(paths):
        return _read_dictionary(paths[0]), _read_dictionary(paths[1]), _labels_of(paths[2])
    sentences = list(_sentences())
    words = ["<unk>", "bos", "eos", *sorted({w for s in sentences for w in s[0]})]
    kinds = sorted({label[2:] for s in sentences for label in s[2] if label != "O"})
    return ({w: i for i, w in enumerate(words)}, {v: i for i, v in enumerate(sorted({s[1] for s in sentences}))},
            _label_ids(kinds))


def get_embedding():
    """The path of a file of word vectors: 16 bytes, then 32 numbers of float32 for each word."""
    path = common.find("conll05st", "emb")
    if path is None:
        common.announce("conll05 (word vectors)", "emb", "Vectors of RANDOM numbers take its place.")
        path = os.path.join(tempfile.mkdtemp(prefix="conll05_"), "emb")
        atexit.register(shutil.rmtree, os.path.dirname(path), True)
        vectors = numpy.random.RandomState(0).uniform(-0.1, 0.1, (len(get_dict()[0]), 32))
        with open(path, "wb") as file:
            file.write(bytes(16) + vectors.astype("float32").tobytes())
    return path


def _context(words, at, offset):
    place = at + offset
    return "bos" if place < 0 else "eos" if place >= len(words) else words[place]


def test():
    """The part that is free; scripts train with it too."""
    def read():
        word_ids, verb_ids, label_ids = get_dict()
        for words, verb, labels in _sentences():
            if "B-V" not in labels:
                continue
            at, count = labels.index("B-V"), len(words)
            around = [[word_ids.get(_context(words, at, offset), UNK_IDX)] * count for offset in (-2, -1, 0, 1, 2)]
            marks = [int(abs(i - at) <= 2) for i in range(count)]
            yield ([word_ids.get(w, UNK_IDX) for w in words], *around, [verb_ids.get(verb, 0)] * count, marks,
                   [label_ids.get(label, label_ids["O"]) for label in labels])
    return read
