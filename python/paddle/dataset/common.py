"""Where the files of data sets are looked for, and how a made-up one is announced. Nothing is downloaded."""
import hashlib
import os
import sys

from paddle._native import native

DATA_HOME = os.path.join(os.path.expanduser("~"), ".cache", "paddle", "dataset")
_announced = set()


def fetch():
    """Nothing: FleetX downloads nothing by itself. What a reader reads it says when it begins."""


def find(module_name, filename):
    """The path of a file of a data set, or None."""
    for home in (native.env("FLEETX_DATA"), DATA_HOME):
        path = os.path.join(home, module_name, filename) if home else ""
        if os.path.isfile(path):
            return path
    return None


def announce(name, wanted, instead):
    """Said once per process: a data set that is not the real one must not pass for it."""
    if name not in _announced:
        _announced.add(name)
        places = " or ".join(os.path.join(home, name) for home in (native.env("FLEETX_DATA"), DATA_HOME) if home)
        print(f"NOTE paddle.dataset.{name}: {wanted} is not in {places}, and FleetX downloads nothing by itself. "
              f"{instead}", file=sys.stderr, flush=True)


def md5file(fname):
    digest = hashlib.md5()
    with open(fname, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def download(url, module_name, md5sum=None, save_name=None):
    """The path of a file that is already there."""
    name = save_name or url.split("/")[-1]
    path = find(module_name, name)
    if path is None:
        raise FileNotFoundError(f"{name} is not in {os.path.join(DATA_HOME, module_name)}; fetch {url} yourself, or use "
                                "fleetx.utils.Downloader")
    if md5sum and md5file(path) != md5sum:
        raise native.CorruptFileError(f"{path}: its md5 is not {md5sum}")
    return path
