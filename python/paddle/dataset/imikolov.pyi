# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset import common as common
from paddle.dataset.common import fetch as fetch

class DataType:
    NGRAM: int
    SEQ: int
def build_dict(min_word_freq: Any = 50) -> Any: ...
def test(word_idx: Any, n: Any, data_type: Any = 1) -> Any: ...
def train(word_idx: Any, n: Any, data_type: Any = 1) -> Any: ...
