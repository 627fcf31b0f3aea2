# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset import common as common
from paddle.dataset.common import fetch as fetch

def get_dict(dict_size: Any, reverse: Any = True) -> Any: ...
def test(dict_size: Any) -> Any: ...
def train(dict_size: Any) -> Any: ...
