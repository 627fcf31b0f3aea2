# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle._graph import emit as emit
from paddle._variable import Variable as Variable
from paddle._variable import Variable as _paddle__variable_Variable

DTypeLike = str | type | numpy.dtype

class Unwritten(_paddle__variable_Variable):
    def __init__(self, program: Program | None, name: str | None, dtype: DTypeLike | None = None, shape: Sequence[int | None | Variable] | None = None, keeps_name: Any = False, stop_gradient: Any = False) -> None: ...
    @property
    def is_written(self) -> Any: ...
    def take(self, value: Any) -> Any: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    stop_gradient: bool
    def to_string(self, throw_on_error: Any = True, with_details: Any = False) -> Any: ...
