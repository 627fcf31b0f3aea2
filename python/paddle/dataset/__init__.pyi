# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset import cifar as cifar
from paddle.dataset import common as common
from paddle.dataset import conll05 as conll05
from paddle.dataset import flowers as flowers
from paddle.dataset import imdb as imdb
from paddle.dataset import imikolov as imikolov
from paddle.dataset import matlab as matlab
from paddle.dataset import mnist as mnist
from paddle.dataset import movielens as movielens
from paddle.dataset import uci_housing as uci_housing
from paddle.dataset import wmt14 as wmt14
from paddle.dataset import wmt16 as wmt16
