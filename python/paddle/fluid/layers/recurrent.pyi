# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle._graph import Variable as Variable
from paddle._graph import call as call
from paddle._graph import emit as emit
from paddle._param import ParamAttr as ParamAttr
from paddle.nn.initializer import Initializer as Initializer
from paddle.tensor.math import activate as activate
from paddle.utils import unique_name as unique_name

DTypeLike = str | type | numpy.dtype

def dynamic_gru(input: Variable, size: int | Sequence[int], param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, is_reverse: Any = False, gate_activation: Any = 'sigmoid', candidate_activation: Any = 'tanh', h_0: Any = None, origin_mode: Any = False) -> Variable: ...
def dynamic_lstm(input: Variable, size: int | Sequence[int], h_0: Any = None, c_0: Any = None, param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, use_peepholes: Any = True, is_reverse: Any = False, gate_activation: Any = 'sigmoid', cell_activation: Any = 'tanh', candidate_activation: Any = 'tanh', dtype: DTypeLike = 'float32', name: str | None = None) -> tuple[Variable, Variable]: ...
def dynamic_lstmp(input: Variable, size: int | Sequence[int], proj_size: Any, param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, use_peepholes: Any = True, is_reverse: Any = False, gate_activation: Any = 'sigmoid', cell_activation: Any = 'tanh', candidate_activation: Any = 'tanh', proj_activation: Any = 'tanh', dtype: DTypeLike = 'float32', name: str | None = None, h_0: Any = None, c_0: Any = None, cell_clip: Any = None, proj_clip: Any = None) -> Variable: ...
def gru_unit(input: Variable, hidden: Any, size: int | Sequence[int], param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, activation: str | None = 'tanh', gate_activation: Any = 'sigmoid', origin_mode: Any = False) -> tuple[Variable, Variable, Variable]: ...
def lstm(input: Variable, init_h: Any, init_c: Any, max_len: Any, hidden_size: Any, num_layers: Any, dropout_prob: Any = 0.0, is_bidirec: Any = False, is_test: bool = False, name: str | None = None, default_initializer: Any = None, seed: Any = -1) -> tuple[Variable, Variable, Variable]: ...
