# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle._graph import Variable as Variable
from paddle._param import ParamAttr as ParamAttr
from paddle.nn.initializer import Initializer as Initializer
from paddle.utils import unique_name as unique_name

def batch_fc(input: Variable, param_size: Any, param_attr: ParamAttr | Initializer | str | bool | None, bias_size: Any, bias_attr: ParamAttr | Initializer | str | bool | None, act: str | None = None) -> Any: ...
def fused_elemwise_activation(x: Variable, y: Variable | float, functor_list: Any, axis: int | Sequence[int] | None = -1, scale: Any = 0.0, save_intermediate_out: Any = True) -> Any: ...
def partial_concat(input: Variable, start_index: Any = 0, length: Any = -1) -> Any: ...
def partial_sum(input: Variable, start_index: Any = 0, length: Any = -1) -> Any: ...
def shuffle_batch(x: Variable, seed: Any = None) -> Any: ...
