# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle._param import ParamAttr as ParamAttr
from paddle.nn import functional as F
from paddle.nn import initializer as I
from paddle.nn.functional import _volumes as volumes
from paddle.nn.initializer import Initializer as Initializer
from paddle.nn.layer.layers import Layer as Layer
from paddle.nn.layer.layers import Layer as _paddle_nn_layer_layers_Layer
from paddle.tensor import manipulation as manipulation
from paddle.tensor import math as math

DTypeLike = str | type | numpy.dtype

REQUIRED: Any


class BatchNorm(_BatchNormBase):
    training: Any
    def __init__(self, num_channels: Any, act: str | None = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-05, param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, dtype: DTypeLike = 'float32', data_layout: str | None = 'NCHW', in_place: Any = False, moving_mean_name: Any = None, moving_variance_name: Any = None, do_model_average_for_mean_and_var: Any = True, use_global_stats: Any = False, trainable_statistics: Any = False) -> None: ...
    def forward(self, input: Variable) -> Any: ...


class BatchNorm1D(_BatchNormBase):
    def __init__(self, num_features: Any, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCL', use_global_stats: Any = None, name: str | None = None) -> None: ...


class BatchNorm2D(_BatchNormBase):
    ...


class BatchNorm3D(_BatchNormBase):
    def __init__(self, num_features: Any, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCDHW', use_global_stats: Any = None, name: str | None = None) -> None: ...


class Bilinear(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, in1_features: Any, in2_features: Any, out_features: Any, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, name: str | None = None) -> None: ...
    def forward(self, x1: Any, x2: Any) -> Any: ...  # type: ignore[override]


class Conv1D(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, padding_mode: Any = 'zeros', weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCL') -> None: ...
    def forward(self, x: Variable) -> Any: ...  # type: ignore[override]


class Conv2D(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, padding_mode: Any = 'zeros', weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW') -> None: ...
    def forward(self, x: Variable) -> Any: ...  # type: ignore[override]


class Conv2DTranspose(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1, groups: int = 1, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW') -> None: ...
    def forward(self, x: Variable, output_size: Any = None) -> Any: ...  # type: ignore[override]


class Conv3D(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, in_channels: Any, out_channels: Any, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, padding_mode: Any = 'zeros', weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCDHW') -> None: ...
    def forward(self, x: Variable) -> Any: ...  # type: ignore[override]


class Dropout(_paddle_nn_layer_layers_Layer):
    def __init__(self, p: float = 0.5, axis: int | Sequence[int] | None = None, mode: str | None = 'upscale_in_train', name: str | None = None) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]


class Embedding(_paddle_nn_layer_layers_Layer):
    weight: Any
    def __init__(self, num_embeddings: Any, embedding_dim: Any, padding_idx: Any = None, sparse: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, name: str | None = None) -> None: ...
    def forward(self, x: Variable) -> Any: ...  # type: ignore[override]


class Flatten(_paddle_nn_layer_layers_Layer):
    def __init__(self, start_axis: Any = 1, stop_axis: Any = -1) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]


class GroupNorm(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, num_groups: Any, num_channels: Any, epsilon: float = 1e-05, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW', name: str | None = None) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]


class Identity(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]


class InstanceNorm2D(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, num_features: Any, epsilon: float = 1e-05, momentum: float = 0.9, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW', name: str | None = None) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]


class LayerNorm(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, normalized_shape: Any, epsilon: float = 1e-05, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, name: str | None = None) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]


class Linear(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, in_features: Any, out_features: Any, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, name: str | None = None) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class PReLU(_paddle_nn_layer_layers_Layer):
    weight: Any
    def __init__(self, num_parameters: Any = 1, init: Any = 0.25, weight_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW', name: str | None = None) -> None: ...
    def forward(self, x: Variable) -> Any: ...  # type: ignore[override]


class SyncBatchNorm(_BatchNormBase):
    def __init__(self, num_features: Any, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW', name: str | None = None) -> None: ...


class _BatchNormBase(_paddle_nn_layer_layers_Layer):
    weight: Any
    bias: Any
    def __init__(self, num_features: Any, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, data_format: str | None = 'NCHW', use_global_stats: Any = None, name: str | None = None, mean_name: Any = None, variance_name: Any = None) -> None: ...
    def forward(self, input: Variable) -> Any: ...  # type: ignore[override]
def holder(name: str | None, function: Any, *parameters: Any) -> Any: ...
InstanceNorm1D = InstanceNorm2D
