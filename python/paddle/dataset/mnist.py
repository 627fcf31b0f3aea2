"""Ten kinds of 28x28 pictures: (784 float32 in [-1, 1], label)."""
import gzip
import os

import numpy

from paddle._native import native
from paddle.dataset import common
from paddle.dataset.common import fetch  # noqa: F401

_DEBIAN = "/usr/share/datasets/fashion-mnist"
_FILES = {"train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
          "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")}


def _idx(path, dims):
    with open(path, "rb") as file:
        data = file.read()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    head = numpy.frombuffer(data, ">u4", 1 + dims) if len(data) >= 4 + 4 * dims else None
    if head is None or head[0] != 0x800 + dims or len(data) != 4 + 4 * dims + int(numpy.prod(head[1:], dtype="int64")):
        raise native.CorruptFileError(f"{path} is not an IDX file of {dims} dimensions")
    return numpy.frombuffer(data, "uint8", offset=4 + 4 * dims).reshape(head[1:].astype("int64"))


def _paths(split):
    paths = [common.find("mnist", name) for name in _FILES[split]]
    if all(paths):
        return paths
    paths = [os.path.join(_DEBIAN, name) for name in _FILES[split]]
    if not all(os.path.isfile(p) for p in paths):
        raise FileNotFoundError("paddle.dataset.mnist: neither MNIST nor Debian's dataset-fashion-mnist is here")
    common.announce("mnist", "MNIST", f"Fashion-MNIST (pictures of clothes, {_DEBIAN}) takes its place.")
    return paths


def reader_creator(image_filename, label_filename, buffer_size=100):
    """Of two files in MNIST's format; they are read as a whole, whatever buffer_size says."""
    return _reader(lambda: (image_filename, label_filename))


def _reader(paths):
    def read():
        images, labels = (_idx(path, dims) for path, dims in zip(paths(), (3, 1)))
        for image, label in zip(images, labels):
            yield image.reshape(-1).astype("float32") / 127.5 - 1.0, int(label)
    return read


def train():
    return _reader(lambda: _paths("train"))


def test():
    return _reader(lambda: _paths("test"))
