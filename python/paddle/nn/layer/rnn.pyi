# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import as_list as as_list
from paddle._graph import call as call
from paddle._variable import Variable as Variable
from paddle.nn import functional as F
from paddle.nn import initializer as I
from paddle.nn.layer.container import LayerList as LayerList
from paddle.nn.layer.layers import Layer as Layer
from paddle.nn.layer.layers import Layer as _paddle_nn_layer_layers_Layer
from paddle.tensor import creation as creation
from paddle.tensor import logic as logic
from paddle.tensor import manipulation as manipulation
from paddle.tensor import math as math

DTypeLike = str | type | numpy.dtype

class BiRNN(_paddle_nn_layer_layers_Layer):
    cell_fw: Any
    cell_bw: Any
    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: Any = False) -> None: ...
    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any: ...  # type: ignore[override]


class GRU(_Stack):
    CELL: Any


class GRUCell(_Cell):
    GATES: int
    def step(self, gates: Any, h: Any) -> Any: ...


class LSTM(_Stack):
    CELL: Any


class LSTMCell(_Cell):
    GATES: int
    @property
    def state_shape(self) -> Any: ...
    def step(self, gates: Any, states: Any) -> Any: ...


class RNN(_paddle_nn_layer_layers_Layer):
    cell: Any
    is_reverse: Any
    time_major: Any
    def __init__(self, cell: Any, is_reverse: Any = False, time_major: Any = False) -> None: ...
    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any: ...  # type: ignore[override]


class RNNCellBase(_paddle_nn_layer_layers_Layer):
    def get_initial_states(self, batch_ref: Any, shape: Sequence[int | None | Variable] | None = None, dtype: DTypeLike | None = None, init_value: Any = 0.0, batch_dim_idx: Any = 0) -> Any: ...


class SimpleRNN(_Stack):
    CELL: Any
    def __init__(self, input_size: Any, hidden_size: Any, num_layers: Any = 1, direction: Any = 'forward', time_major: Any = False, dropout: Any = 0.0, activation: str | None = 'tanh', weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None) -> None: ...


class SimpleRNNCell(_Cell):
    def __init__(self, input_size: Any, hidden_size: Any, activation: str | None = 'tanh', weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None) -> None: ...
    def step(self, gates: Any, h: Any) -> Any: ...


class _Cell(RNNCellBase):
    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any
    input_size: Any
    hidden_size: Any
    GATES: int
    def __init__(self, input_size: Any, hidden_size: Any, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None) -> None: ...
    @property
    def state_shape(self) -> Any: ...
    def project(self, inputs: Any) -> Any: ...
    def recur(self, output: Any) -> Any: ...
    def forward(self, inputs: Any, states: Any = None) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class _Stack(_paddle_nn_layer_layers_Layer):
    num_directions: Any
    input_size: Any
    hidden_size: Any
    num_layers: Any
    time_major: Any
    dropout: Any
    CELL: Any
    def __init__(self, input_size: Any, hidden_size: Any, num_layers: Any = 1, direction: Any = 'forward', time_major: Any = False, dropout: Any = 0.0, weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: str | None = None) -> None: ...
    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Any = None) -> Any: ...  # type: ignore[override]
