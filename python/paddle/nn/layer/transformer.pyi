# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
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
from paddle.nn.layer.layers import Layer as _paddle_nn_layer_layers_Layer
from paddle.tensor import creation as creation
from paddle.tensor import manipulation as manipulation
from paddle.tensor import math as math

class MultiHeadAttention(_paddle_nn_layer_layers_Layer):
    q_proj: Any
    k_proj: Any
    v_proj: Any
    out_proj: Any
    embed_dim: Any
    num_heads: Any
    head_dim: Any
    dropout: Any
    need_weights: Any
    def __init__(self, embed_dim: Any, num_heads: Any, dropout: Any = 0.0, kdim: Any = None, vdim: Any = None, need_weights: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None) -> None: ...
    def forward(self, query: Any, key: Any = None, value: Any = None, attn_mask: Any = None, cache: Any = None) -> Any: ...  # type: ignore[override]


class Transformer(_paddle_nn_layer_layers_Layer):
    encoder: Any
    decoder: Any
    d_model: Any
    nhead: Any
    def __init__(self, d_model: Any = 512, nhead: Any = 8, num_encoder_layers: Any = 6, num_decoder_layers: Any = 6, dim_feedforward: Any = 2048, dropout: Any = 0.1, activation: str | None = 'relu', attn_dropout: Any = None, act_dropout: Any = None, normalize_before: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None, custom_encoder: Any = None, custom_decoder: Any = None) -> None: ...
    def forward(self, src: Any, tgt: Any, src_mask: Any = None, tgt_mask: Any = None, memory_mask: Any = None) -> Any: ...  # type: ignore[override]
    def generate_square_subsequent_mask(self, length: Any) -> Any: ...


class TransformerDecoder(_Stack):
    def __init__(self, decoder_layer: Any, num_layers: Any, norm: Any = None) -> None: ...
    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, cache: Any = None) -> Any: ...  # type: ignore[override]


class TransformerDecoderLayer(TransformerEncoderLayer):
    cross_attn: Any
    norm3: Any
    dropout3: Any
    def __init__(self, d_model: Any, nhead: Any, dim_feedforward: Any, dropout: Any = 0.1, activation: str | None = 'relu', attn_dropout: Any = None, act_dropout: Any = None, normalize_before: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None) -> None: ...
    def forward(self, tgt: Any, memory: Any, tgt_mask: Any = None, memory_mask: Any = None, cache: Any = None) -> Any: ...  # type: ignore[override]


class TransformerEncoder(_Stack):
    def __init__(self, encoder_layer: Any, num_layers: Any, norm: Any = None) -> None: ...
    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any: ...  # type: ignore[override]


class TransformerEncoderLayer(_paddle_nn_layer_layers_Layer):
    self_attn: Any
    linear1: Any
    dropout: Any
    linear2: Any
    normalize_before: Any
    norm1: Any
    norm2: Any
    dropout1: Any
    dropout2: Any
    def __init__(self, d_model: Any, nhead: Any, dim_feedforward: Any, dropout: Any = 0.1, activation: str | None = 'relu', attn_dropout: Any = None, act_dropout: Any = None, normalize_before: Any = False, weight_attr: ParamAttr | Initializer | str | bool | None = None, bias_attr: ParamAttr | Initializer | str | bool | None = None) -> None: ...
    def forward(self, src: Any, src_mask: Any = None, cache: Any = None) -> Any: ...  # type: ignore[override]


class _Stack(_paddle_nn_layer_layers_Layer):
    layers: Any
    norm: Any
    def __init__(self, layer: Any, num_layers: Any, norm: Any = None) -> None: ...
