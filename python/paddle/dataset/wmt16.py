"""English and German (Multi30K): (source ids, target ids from <s>, target ids to <e>)."""
import collections
import functools
import tarfile

from paddle._native import native
from paddle.dataset import _translation, common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVE = "wmt16.tar.gz"
_MADE_UP = {"train": 1000, "test": 100, "val": 100}
_LANGUAGES = ("en", "de")


def _pairs(part):
    """(English words, German words)."""
    path = common.find("wmt16", _ARCHIVE)
    if path is None:
        common.announce("wmt16", _ARCHIVE, f"A MADE-UP set of {_MADE_UP['train']} pairs of sentences takes its place.")
        yield from _translation.made_up(part, _MADE_UP[part])
        return
    with tarfile.open(path) as archive:
        member = next((m for m in archive if m.name.endswith(f"wmt16/{part}")), None)
        if member is None:
            raise native.CorruptFileError(f"{path} has no wmt16/{part}")
        for line in archive.extractfile(member):
            fields = line.decode("utf-8", "replace").strip().split("\t")
            if len(fields) == 2:
                yield fields[0].split(), fields[1].split()


def _check(language):
    if language not in _LANGUAGES:
        raise ValueError(f"wmt16: the language must be 'en' or 'de', got {language!r}")
    return _LANGUAGES.index(language)


@functools.lru_cache(maxsize=None)
def _words(side):
    counts = collections.Counter(word for pair in _pairs("train") for word in pair[side])
    return tuple(sorted(counts, key=lambda w: (-counts[w], w)))


def get_dict(lang, dict_size, reverse=False):
    """{word: id} of the marks and the most frequent words; {id: word} where reverse is set."""
    words = _words(_check(lang))
    if common.find("wmt16", _ARCHIVE) is None:
        words = dict.fromkeys([*words, *_translation.made_up_words("st"[_check(lang)], dict_size)])
    ids = _translation.ids_of(words, dict_size)
    return {i: w for w, i in ids.items()} if reverse else ids


def _reader(part, src_dict_size, trg_dict_size, src_lang):
    side = _check(src_lang)

    def read():
        source_ids = get_dict(_LANGUAGES[side], src_dict_size)
        target_ids = get_dict(_LANGUAGES[1 - side], trg_dict_size)
        for pair in _pairs(part):
            yield _translation.sample(pair[side], pair[1 - side], source_ids, target_ids)
    return read


def train(src_dict_size, trg_dict_size, src_lang="en"):
    return _reader("train", src_dict_size, trg_dict_size, src_lang)


def test(src_dict_size, trg_dict_size, src_lang="en"):
    return _reader("test", src_dict_size, trg_dict_size, src_lang)


def validation(src_dict_size, trg_dict_size, src_lang="en"):
    return _reader("val", src_dict_size, trg_dict_size, src_lang)
