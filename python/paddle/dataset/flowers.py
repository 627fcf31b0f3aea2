"""102 kinds of flowers. Samples are (3*224*224 float32 pixels, blue first, mean taken off; label from 0)."""
import itertools
import os
import tarfile

import numpy

from paddle._native import native
from paddle.dataset import common, matlab
from paddle.dataset.common import fetch  # noqa: F401

_FILES = ("102flowers.tgz", "imagelabels.mat", "setid.mat")
# The larger part of the original split is used for training, as everybody does.
_SPLITS = {"train": "tstid", "test": "trnid", "valid": "valid"}
_GENERATED = {"train": 1020, "val": 204}
_MEAN_OFF = numpy.array([103.94, 116.78, 123.68], "float32").reshape(3, 1, 1)
_MEAN = numpy.array([0.485, 0.456, 0.406], "float32").reshape(3, 1, 1)
_STD = numpy.array([0.229, 0.224, 0.225], "float32").reshape(3, 1, 1)


def _real_lists(paths):
    """Unpacks the archive beside itself, once, and writes one list per split."""
    folder = os.path.join(os.path.dirname(paths[0]), "fleetx-unpacked")
    if not os.path.exists(os.path.join(folder, "done")):
        os.makedirs(folder, exist_ok=True)
        labels = matlab.load(paths[1])["labels"].astype("int64")
        splits = matlab.load(paths[2])
        with tarfile.open(paths[0]) as archive:
            for member in archive:
                name = os.path.basename(member.name)
                if member.isfile() and name.endswith(".jpg"):
                    with open(os.path.join(folder, name), "wb") as out:
                        out.write(archive.extractfile(member).read())
        for split, key in _SPLITS.items():
            with open(os.path.join(folder, split + ".txt"), "w") as out:
                out.writelines(f"image_{i:05d}.jpg {labels[i - 1] - 1}\n" for i in splits[key].astype("int64"))
        with open(os.path.join(folder, "done"), "w"):
            pass
    return folder


def _list_of(split):
    paths = [common.find("flowers", name) for name in _FILES]
    if all(paths):
        return os.path.join(_real_lists(paths), split + ".txt")
    common.announce("flowers", "the Oxford data set (102flowers.tgz, imagelabels.mat, setid.mat)",
                    f"A MADE-UP set of {_GENERATED['train']} drawn flowers of 102 kinds takes its place.")
    folder = native.cached_flowers(102, _GENERATED["train"], _GENERATED["val"], 256)
    return os.path.join(folder, "train.txt" if split == "train" else "val.txt")


def _reader(split, mapper, train, cycle):
    passes = itertools.count()  # each has an order and crops of its own

    def read():
        loader = native.ImageLoader(
            list=_list_of(split), batch=1, train=train, size=224, resize=256, min_area=0.08, classes=102, shuffle=train,
            drop_last=False, seed=0, rank=0, world=1, threads=1, prefetch=64, on_damaged="raise", image="image",
            label="label")
        while True:
            loader.begin_pass(next(passes))
            for _ in range(loader.batches):
                sample = loader.next()
                pixels = (sample["image"][0] * _STD + _MEAN) * numpy.float32(255.0)
                out = (pixels[::-1] - _MEAN_OFF).reshape(-1), int(sample["label"].reshape(-1)[0])
                yield out if mapper is None else mapper(out)
            if not cycle:
                return
    return read


def train(mapper=None, buffered_size=1024, use_xmap=True, cycle=False):
    """Cropped and mirrored at random, in random order."""
    return _reader("train", mapper, True, cycle)


def test(mapper=None, buffered_size=1024, use_xmap=True, cycle=False):
    return _reader("test", mapper, False, cycle)


def valid(mapper=None, buffered_size=1024, use_xmap=True):
    return _reader("valid", mapper, False, False)
