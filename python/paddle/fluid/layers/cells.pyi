# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle._graph import Variable as Variable
from paddle._param import ParamAttr as ParamAttr
from paddle.fluid.contrib.layers.rnn_impl import BasicGRUUnit as BasicGRUUnit
from paddle.fluid.contrib.layers.rnn_impl import BasicLSTMUnit as BasicLSTMUnit
from paddle.fluid.layers.static_rnn import over_steps as over_steps
from paddle.nn.initializer import Initializer as Initializer

DTypeLike = str | type | numpy.dtype

class GRUCell(RNNCell):
    hidden_size: Any
    gru_unit: Any
    def __init__(self, hidden_size: Any, param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, gate_activation: Any = None, activation: str | None = None, dtype: DTypeLike = 'float32', name: str | None = 'GRUCell') -> None: ...
    def call(self, inputs: Any, states: Any) -> Any: ...  # type: ignore[override]
    @property
    def state_shape(self) -> Any: ...


class LSTMCell(RNNCell):
    hidden_size: Any
    lstm_unit: Any
    def __init__(self, hidden_size: Any, param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, gate_activation: Any = None, activation: str | None = None, forget_bias: Any = 1.0, dtype: DTypeLike = 'float32', name: str | None = 'LSTMCell') -> None: ...
    def call(self, inputs: Any, states: Any) -> Any: ...  # type: ignore[override]
    @property
    def state_shape(self) -> Any: ...


class RNNCell:
    def call(self, inputs: Any, states: Any, **kwargs: Any) -> Any: ...
    def __call__(self, inputs: Any, states: Any, **kwargs: Any) -> Any: ...
    def get_initial_states(self, batch_ref: Any, shape: Sequence[int | None | Variable] | None = None, dtype: DTypeLike | None = None, init_value: Any = 0.0, batch_dim_idx: Any = 0) -> Any: ...
    @property
    def state_shape(self) -> Any: ...
def rnn(cell: Any, inputs: Any, initial_states: Any = None, sequence_length: Any = None, time_major: Any = False, is_reverse: Any = False, **kwargs: Any) -> Variable: ...
