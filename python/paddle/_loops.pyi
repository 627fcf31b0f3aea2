# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle.utils import unique_name as unique_name

class Family:
    loops: Any
    def __init__(self) -> None: ...
    def steps(self, program: Program | None, run: Any, feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Any: ...
    def more(self, times: Any, done: Any) -> Any: ...
    def questions(self) -> Any: ...
    def member(self, program: Program | None, times: Any) -> Any: ...


class Loop:
    rounded: Any
    steps: Any
    ops: Any
    carried: Any
    collected: Any
    done: Any
    most: Any
    def __init__(self, steps: Any, ops: Any, carried: Any, collected: Any, rounded: Any) -> None: ...
    def ends_at(self, done: Any, most: Any) -> Any: ...
    def times(self, steps: Any) -> Any: ...
