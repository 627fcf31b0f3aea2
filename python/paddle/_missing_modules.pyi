# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable

ALSO_CALLED: Any
NEAREST: Any


class Finder:
    @staticmethod
    def find_spec(name: str | None, path: str | None = None, target: Variable | None = None) -> Any: ...


class Names:
    @staticmethod
    def find_spec(name: str | None, path: str | None = None, target: Variable | None = None) -> Any: ...


class _Same:
    def __init__(self, name: str | None) -> None: ...
    def create_module(self, spec: Any) -> Any: ...
    def exec_module(self, module: Any) -> Any: ...
def install() -> Any: ...
