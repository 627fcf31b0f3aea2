# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle._param import ParamAttr as ParamAttr
from paddle.fluid import layers as layers
from paddle.nn.initializer import Initializer as Initializer

def glu(input: Variable, dim: Any = -1) -> Any: ...
def img_conv_group(input: Variable, conv_num_filter: Any, pool_size: Any, conv_padding: Any = 1, conv_filter_size: Any = 3, conv_act: Any = None, param_attr: ParamAttr | Initializer | str | bool | None = None, conv_with_batchnorm: Any = False, conv_batchnorm_drop_rate: Any = 0.0, pool_stride: Any = 1, pool_type: Any = 'max', use_cudnn: Any = True) -> Any: ...
def scaled_dot_product_attention(queries: Any, keys: Any, values: Any, num_heads: Any = 1, dropout_rate: Any = 0.0) -> Any: ...
def sequence_conv_pool(input: Variable, num_filters: int, filter_size: Any, param_attr: ParamAttr | Initializer | str | bool | None = None, act: str | None = 'sigmoid', pool_type: Any = 'max', bias_attr: ParamAttr | Initializer | str | bool | None = None) -> Any: ...
def simple_img_conv_pool(input: Variable, num_filters: int, filter_size: Any, pool_size: Any, pool_stride: Any, pool_padding: Any = 0, pool_type: Any = 'max', global_pooling: Any = False, conv_stride: Any = 1, conv_padding: Any = 0, conv_dilation: Any = 1, conv_groups: Any = 1, param_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, act: str | None = None, use_cudnn: Any = True) -> Any: ...
