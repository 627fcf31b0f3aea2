# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from paddle._param import ParamAttr as ParamAttr
from paddle.nn import functional as F
from paddle.nn.initializer import Initializer as Initializer
from paddle.nn.layer.common import Dropout as Dropout
from paddle.nn.layer.common import LayerNorm as LayerNorm
from paddle.nn.layer.common import Linear as Linear
from paddle.nn.layer.container import LayerList as LayerList
from paddle.nn.layer.layers import Layer as Layer
from paddle.tensor import manipulation as manipulation
from paddle.tensor import math as math

class MultiHeadAttention(Layer):
    def __init__(self, embed_dim: Any, num_heads: Any, dropout: Any = 0.0, kdim: Any = None, vdim: Any = None, need_weights: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None) -> None: ...
    def forward(self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None, cache: Any = None) -> Any: ...


class TransformerDecoder:
    def __init__(self, decoder_layer: Any, num_layers: Any, norm: Any = None) -> None: ...
    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, cache: Any = None) -> Any: ...


class TransformerDecoderLayer(TransformerEncoderLayer):
    def __init__(self, d_model: Any, nhead: Any, dim_feedforward: Any, dropout: Any = 0.1, activation: str | None = 'relu', attn_dropout: Any = None, act_dropout: Any = None, normalize_before: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None) -> None: ...
    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, cache: Any = None) -> Any: ...


class TransformerEncoder:
    def __init__(self, encoder_layer: Any, num_layers: Any, norm: Any = None) -> None: ...
    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any: ...


class TransformerEncoderLayer(Layer):
    def __init__(self, d_model: Any, nhead: Any, dim_feedforward: Any, dropout: Any = 0.1, activation: str | None = 'relu', attn_dropout: Any = None, act_dropout: Any = None, normalize_before: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None) -> None: ...
    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any: ...
