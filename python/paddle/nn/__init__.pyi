# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn import clip as clip
from paddle.nn import decode as decode
from paddle.nn import functional as functional
from paddle.nn import initializer as initializer
from paddle.nn import layer as layer
from paddle.nn import utils as utils
from paddle.nn.clip import ClipGradByGlobalNorm as ClipGradByGlobalNorm
from paddle.nn.clip import ClipGradByNorm as ClipGradByNorm
from paddle.nn.clip import ClipGradByValue as ClipGradByValue
from paddle.nn.layer import activation as activation
from paddle.nn.layer import common as common
from paddle.nn.layer import container as container
from paddle.nn.layer import conv as conv
from paddle.nn.layer import distance as distance
from paddle.nn.layer import loss as loss
from paddle.nn.layer import norm as norm
from paddle.nn.layer import pooling as pooling
from paddle.nn.layer import rnn as rnn
from paddle.nn.layer import transformer as transformer
from paddle.nn.layer import vision as vision
from paddle.nn.layer.common import BatchNorm as BatchNorm
from paddle.nn.layer.common import BatchNorm1D as BatchNorm1D
from paddle.nn.layer.common import BatchNorm2D as BatchNorm2D
from paddle.nn.layer.common import BatchNorm3D as BatchNorm3D
from paddle.nn.layer.common import Bilinear as Bilinear
from paddle.nn.layer.common import Conv1D as Conv1D
from paddle.nn.layer.common import Conv2D as Conv2D
from paddle.nn.layer.common import Conv2DTranspose as Conv2DTranspose
from paddle.nn.layer.common import Conv3D as Conv3D
from paddle.nn.layer.common import Dropout as Dropout
from paddle.nn.layer.common import Embedding as Embedding
from paddle.nn.layer.common import Flatten as Flatten
from paddle.nn.layer.common import GroupNorm as GroupNorm
from paddle.nn.layer.common import Identity as Identity
from paddle.nn.layer.common import InstanceNorm2D as InstanceNorm1D
from paddle.nn.layer.common import InstanceNorm2D as InstanceNorm2D
from paddle.nn.layer.common import LayerNorm as LayerNorm
from paddle.nn.layer.common import Linear as Linear
from paddle.nn.layer.common import PReLU as PReLU
from paddle.nn.layer.common import SyncBatchNorm as SyncBatchNorm
from paddle.nn.layer.container import LayerDict as LayerDict
from paddle.nn.layer.container import LayerList as LayerList
from paddle.nn.layer.container import ParameterList as ParameterList
from paddle.nn.layer.container import Sequential as Sequential
from paddle.nn.layer.layers import Layer as Layer
from paddle.nn.layer.layers import Layer as _paddle_nn_layer_layers_Layer
from paddle.nn.layer.rnn import BiRNN as BiRNN
from paddle.nn.layer.rnn import GRU as GRU
from paddle.nn.layer.rnn import GRUCell as GRUCell
from paddle.nn.layer.rnn import LSTM as LSTM
from paddle.nn.layer.rnn import LSTMCell as LSTMCell
from paddle.nn.layer.rnn import RNN as RNN
from paddle.nn.layer.rnn import RNNCellBase as RNNCellBase
from paddle.nn.layer.rnn import SimpleRNN as SimpleRNN
from paddle.nn.layer.rnn import SimpleRNNCell as SimpleRNNCell
from paddle.nn.layer.transformer import MultiHeadAttention as MultiHeadAttention
from paddle.nn.layer.transformer import Transformer as Transformer
from paddle.nn.layer.transformer import TransformerDecoder as TransformerDecoder
from paddle.nn.layer.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from paddle.nn.layer.transformer import TransformerEncoder as TransformerEncoder
from paddle.nn.layer.transformer import TransformerEncoderLayer as TransformerEncoderLayer

class AdaptiveAvgPool1D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AdaptiveAvgPool2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AdaptiveAvgPool3D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AdaptiveMaxPool1D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AdaptiveMaxPool2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AdaptiveMaxPool3D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AvgPool1D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AvgPool2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class AvgPool3D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class BCELoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class BCEWithLogitsLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class CELU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class CosineEmbeddingLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class CosineSimilarity(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class CrossEntropyLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class ELU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class GELU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Hardshrink(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Hardsigmoid(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Hardswish(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Hardtanh(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class HingeEmbeddingLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class KLDivLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class L1Loss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class LeakyReLU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class LocalResponseNorm(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class LogSigmoid(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class LogSoftmax(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class MSELoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class MarginRankingLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class MaxPool1D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class MaxPool2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class MaxPool3D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Maxout(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Mish(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class NLLLoss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Pad1D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Pad2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class PairwiseDistance(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class PixelShuffle(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class ReLU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class ReLU6(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class SELU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Sigmoid(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Silu(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class SmoothL1Loss(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Softmax(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Softplus(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Softshrink(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Softsign(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Swish(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Tanh(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Tanhshrink(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class ThresholdedReLU(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Unfold(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class Upsample(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class UpsamplingBilinear2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class UpsamplingNearest2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...


class ZeroPad2D(_paddle_nn_layer_layers_Layer):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def forward(self, *inputs: Any) -> Any: ...  # type: ignore[override]
    def extra_repr(self) -> Any: ...
