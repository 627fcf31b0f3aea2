"""Readers of well-known data sets, from files that are already on this machine. Where a real one is not there, a
made-up one takes its place and a line on stderr says so."""
from paddle import _refuse
from paddle.dataset import (cifar, common, conll05, flowers, imdb, imikolov, mnist, movielens, uci_housing, wmt14,  # noqa: F401
                            wmt16)

_READ_YOURSELF = "paddle.io.DataLoader.from_generator over a reader of your own"
__getattr__ = _refuse.getter(__name__, {name: _READ_YOURSELF for name in (
    "sentiment", "mq2007", "voc2012", "image")})
