# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle._variable import Variable as Variable

def load(path: str | None, return_numpy: bool = True) -> Any: ...
def save(obj: Any, path: str | None, protocol: Any = 4, use_binary_format: Any = False) -> None: ...
