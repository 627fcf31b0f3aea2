# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset import common as common
from paddle.dataset.common import fetch as fetch

def reader_creator(image_filename: Any, label_filename: Any, buffer_size: Any = 100) -> Any: ...
def test() -> Any: ...
def train() -> Any: ...
