# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle._graph import Variable as Variable
from paddle._native import user_line as user_line
from paddle.nn import initializer as I
from paddle.nn.initializer import Initializer as Initializer
from paddle.regularizer import WeightDecayRegularizer as WeightDecayRegularizer
from paddle.utils import unique_name as unique_name

DTypeLike = str | type | numpy.dtype
LearningRate = Any

class ParamAttr:
    name: str
    initializer: Any
    learning_rate: Any
    regularizer: Any
    trainable: Any
    do_model_average: Any
    need_clip: Any
    is_distributed: Any
    gradient_clip: Any
    def __init__(self, name: str | None = None, initializer: Any = None, learning_rate: float | LearningRate = 1.0, regularizer: Any = None, trainable: bool = True, do_model_average: Any = True, need_clip: bool = True, is_distributed: Any = False, gradient_clip: Any = None) -> None: ...


class WeightNormParamAttr(ParamAttr):
    def __init__(self, dim: Any = None, name: str | None = None, initializer: Any = None, learning_rate: float | LearningRate = 1.0, regularizer: Any = None, trainable: bool = True, do_model_average: Any = False, need_clip: bool = True) -> None: ...
def make(shape: Sequence[int | None | Variable], attr: ParamAttr | Initializer | str | bool | None = None, layer: Any = 'param', dtype: DTypeLike = 'float32', is_bias: Any = False, default_init: Any = None, program: Program | None = None) -> Any: ...
def options(attr: ParamAttr | Initializer | str | bool | None, name: str | None, shape: Sequence[int | None | Variable], is_bias: Any = False, default_init: Any = None) -> Any: ...
def remember(program: Program | None, name: str | None, attr: ParamAttr | Initializer | str | bool | None) -> Any: ...
