# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import call as call
from paddle._graph import emit as emit
from paddle._variable import Variable as Variable

DTypeLike = str | type | numpy.dtype

def argmax(x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, dtype: DTypeLike = 'int64', name: str | None = None) -> Variable: ...
def argmin(x: Variable, axis: int | Sequence[int] | None = None, keepdim: bool = False, dtype: DTypeLike = 'int64', name: str | None = None) -> Variable: ...
def argsort(x: Variable, axis: int | Sequence[int] | None = -1, descending: bool = False, name: str | None = None) -> Any: ...
def sort(x: Variable, axis: int | Sequence[int] | None = -1, descending: bool = False, name: str | None = None) -> Variable: ...
def topk(x: Variable, k: int, axis: int | Sequence[int] | None = None, largest: Any = True, sorted: Any = True, name: str | None = None) -> tuple[Variable, Variable]: ...
