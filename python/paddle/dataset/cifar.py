"""Small coloured pictures: (3072 float32 in [0, 1], label), of 10 or 100 kinds. Read from the archives of the Python
version; of their pickles only arrays, lists, texts and numbers are taken."""
import functools
import io
import itertools
import pickle
import tarfile

import numpy

from paddle._native import native
from paddle.dataset import common
from paddle.dataset.common import fetch  # noqa: F401

_ARCHIVES = {10: "cifar-10-python.tar.gz", 100: "cifar-100-python.tar.gz"}
_MADE_UP = {"train": 2000, "test": 400}
_SIDE = 32


class _PlainUnpickler(pickle.Unpickler):
    """Loads nothing that could run code: arrays of NumPy, and what needs no class."""

    _ALLOWED = {("numpy", "ndarray"), ("numpy", "dtype"), ("numpy.core.multiarray", "_reconstruct"),
                ("numpy._core.multiarray", "_reconstruct"), ("_codecs", "encode")}

    def find_class(self, module, name):
        if (module, name) not in self._ALLOWED:
            raise native.CorruptFileError(f"a batch of pictures holds {module}.{name}; only arrays are read")
        return super().find_class(module, name)


def _archived(path, part):
    """(pixels, label) of all batches of a part."""
    with tarfile.open(path) as archive:
        for member in archive:
            if not member.isfile() or part not in member.name.split("/")[-1]:
                continue
            try:
                batch = _PlainUnpickler(io.BytesIO(archive.extractfile(member).read()), encoding="bytes").load()
                labels = batch.get(b"labels", batch.get(b"fine_labels"))
                yield from zip(batch[b"data"], labels, strict=True)
            except (pickle.UnpicklingError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise native.CorruptFileError(f"{path}: {member.name} is no batch of pictures ({error})") from None


def _made_up(kinds, part):
    """Waves whose direction and colour say the kind, with noise."""
    rng = numpy.random.RandomState(kinds + (part == "test"))
    rows, columns = numpy.mgrid[0:_SIDE, 0:_SIDE] / _SIDE
    for _ in range(_MADE_UP[part]):
        label = int(rng.randint(kinds))
        angle, shift = numpy.pi * label / kinds, rng.rand()
        wave = numpy.sin(2 * numpy.pi * (3 * (rows * numpy.cos(angle) + columns * numpy.sin(angle)) + shift))
        colour = 0.5 + 0.5 * numpy.cos(2 * numpy.pi * (label / kinds + numpy.arange(3) / 3))
        picture = 127.5 + 80 * wave[None] * colour[:, None, None] + 20 * rng.randn(3, _SIDE, _SIDE)
        yield numpy.clip(picture, 0, 255).astype("uint8").reshape(-1), label


def _reader(kinds, part, cycle=False):
    def read():
        path = common.find("cifar", _ARCHIVES[kinds])
        if path is None:
            common.announce("cifar", _ARCHIVES[kinds], f"A MADE-UP set of {_MADE_UP['train']} pictures takes its place.")
            once = functools.partial(_made_up, kinds, part)
        else:
            inside = {"train": "data_batch" if kinds == 10 else "train", "test": "test"}[part]
            once = functools.partial(_archived, path, inside)
        for pixels, label in itertools.chain.from_iterable(once() for _ in itertools.repeat(0)) if cycle else once():
            yield pixels.astype("float32") / 255.0, int(label)
    return read


def train10(cycle=False):
    """With `cycle` it begins again and again."""
    return _reader(10, "train", cycle)


def test10(cycle=False):
    return _reader(10, "test", cycle)


def train100():
    return _reader(100, "train")


def test100():
    return _reader(100, "test")
