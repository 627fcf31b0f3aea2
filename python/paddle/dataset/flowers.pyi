# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset import common as common
from paddle.dataset import matlab as matlab
from paddle.dataset.common import fetch as fetch

def test(mapper: Any = None, buffered_size: Any = 1024, use_xmap: Any = True, cycle: Any = False) -> Any: ...
def train(mapper: Any = None, buffered_size: Any = 1024, use_xmap: Any = True, cycle: Any = False) -> Any: ...
def valid(mapper: Any = None, buffered_size: Any = 1024, use_xmap: Any = True) -> Any: ...
