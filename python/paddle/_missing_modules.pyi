# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable

NEAREST: Any


class Finder:
    @staticmethod
    def find_spec(name: str | None, path: str | None = None, target: Variable | None = None) -> Any: ...
def install() -> Any: ...
