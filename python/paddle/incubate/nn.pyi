# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._param import ParamAttr as ParamAttr
from paddle.nn.initializer import Initializer as Initializer
from paddle.nn.layer.common import Linear as Linear
from paddle.nn.layer.common import Linear as _paddle_nn_layer_common_Linear

class FusedLinear(_paddle_nn_layer_common_Linear):
    def __init__(self, in_features: Any, out_features: Any, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, transpose_weight: Any = False, name: str | None = None) -> None: ...
