# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import layer_call as layer_call
from paddle._param import ParamAttr as ParamAttr
from paddle._variable import Variable as Variable
from paddle.nn.initializer import Assign as Assign
from paddle.nn.initializer import Initializer as Initializer
from paddle.static.nn import Names as Names

def split(x: Variable, size: int | Sequence[int], operation: Any, axis: int | Sequence[int] | None = 0, num_partitions: Any = 1, gather_out: Any = True, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, name: str | None = None) -> list[Variable]: ...
