"""English to French: (source ids, target ids from <s>, target ids to <e>)."""
import tarfile

from paddle._native import native
from paddle.dataset import _translation, common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVE = "wmt14.tgz"
_MADE_UP = {"train": 1000, "test": 100}
_LONGEST = 80


def _announce():
    common.announce("wmt14", _ARCHIVE, f"A MADE-UP set of {_MADE_UP['train']} pairs of sentences takes its place.")


def _lines(path, ending):
    with tarfile.open(path) as archive:
        found = [m for m in archive if m.isfile() and m.name.endswith(ending)]
        if not found:
            raise native.CorruptFileError(f"{path} has no file *{ending}")
        for member in found:
            for line in archive.extractfile(member):
                yield line.decode("utf-8", "replace").rstrip("\n")


def _dictionaries(dict_size):
    path = common.find("wmt14", _ARCHIVE)
    if path is None:
        _announce()
        return tuple(_translation.ids_of(_translation.made_up_words(letter, dict_size), dict_size) for letter in "st")
    return tuple({word: i for i, word in zip(range(dict_size), _lines(path, name))} for name in ("src.dict", "trg.dict"))


def _pairs(part):
    path = common.find("wmt14", _ARCHIVE)
    if path is None:
        _announce()
        yield from _translation.made_up(part, _MADE_UP[part])
        return
    for line in _lines(path, f"{part}/{part}"):
        fields = line.split("\t")
        if len(fields) == 2:  # others have no translation
            yield fields[0].split(), fields[1].split()


def _reader(part, dict_size):
    def read():
        source_ids, target_ids = _dictionaries(dict_size)
        for source, target in _pairs(part):
            made = _translation.sample(source, target, source_ids, target_ids)
            if len(made[0]) <= _LONGEST and len(made[1]) <= _LONGEST:
                yield made
    return read


def train(dict_size):
    return _reader("train", dict_size)


def test(dict_size):
    return _reader("test", dict_size)


def get_dict(dict_size, reverse=True):
    """(source, target): {id: word}, or {word: id} where reverse is False."""
    made = _dictionaries(dict_size)
    return tuple({i: w for w, i in d.items()} for d in made) if reverse else made
