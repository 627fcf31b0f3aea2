# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle._graph import Variable as Variable
from paddle._graph import call as call
from paddle._graph import emit as emit

class Padded:
    rows: Any
    lengths: Any
    x: Any
    starts: Any
    def __init__(self, x: Variable, sequence_length: Any = None) -> None: ...
    def padded(self, rows: Any) -> Any: ...
    def last(self, rows: Any, reverse: Any) -> Any: ...
def lstm(x: Variable, w_x: Any, w_h: Any, bias: Variable, h0: Any = None, c0: Any = None, sequence_length: Any = None, reverse: Any = False) -> tuple[Variable, Variable, Variable]: ...
def reordered(weight: Variable, order: Any) -> Variable: ...
