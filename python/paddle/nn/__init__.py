"""Layers as objects. Made and called while a program is being built, they add parameters and ops to it."""
from paddle import _refuse
from paddle.nn import functional, initializer
from paddle.nn import functional as _F
from paddle.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from paddle.nn.layer.common import (REQUIRED as _REQUIRED, BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, Bilinear,
                                    Conv1D, Conv2D, Conv2DTranspose, Conv3D, Dropout, Embedding, Flatten, GroupNorm, Identity, InstanceNorm1D,
                                    InstanceNorm2D, LayerNorm, Linear, PReLU, SyncBatchNorm, holder as _holder)
from paddle.nn.layer.container import LayerDict, LayerList, ParameterList, Sequential
from paddle.nn.layer.layers import Layer
from paddle.nn.layer.rnn import (GRU, LSTM, RNN, BiRNN, GRUCell, LSTMCell, RNNCellBase, SimpleRNN,  # noqa: F401
                                 SimpleRNNCell)
from paddle.nn.layer.transformer import (MultiHeadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer,
                                         TransformerEncoder, TransformerEncoderLayer)

ReLU = _holder("ReLU", _F.relu)
ReLU6 = _holder("ReLU6", _F.relu6)
LeakyReLU = _holder("LeakyReLU", _F.leaky_relu, ("negative_slope", 0.01))
ELU = _holder("ELU", _F.elu, ("alpha", 1.0))
CELU = _holder("CELU", _F.celu, ("alpha", 1.0))
SELU = _holder("SELU", _F.selu)
GELU = _holder("GELU", _F.gelu, ("approximate", False))
Sigmoid = _holder("Sigmoid", _F.sigmoid)
LogSigmoid = _holder("LogSigmoid", _F.log_sigmoid)
Tanh = _holder("Tanh", _F.tanh)
Swish = _holder("Swish", _F.swish)
Silu = _holder("Silu", _F.silu)
Mish = _holder("Mish", _F.mish)
Softplus = _holder("Softplus", _F.softplus, ("beta", 1), ("threshold", 20))
Softsign = _holder("Softsign", _F.softsign)
Softshrink = _holder("Softshrink", _F.softshrink, ("threshold", 0.5))
Hardshrink = _holder("Hardshrink", _F.hardshrink, ("threshold", 0.5))
Hardsigmoid = _holder("Hardsigmoid", _F.hardsigmoid)
Hardswish = _holder("Hardswish", _F.hardswish)
Hardtanh = _holder("Hardtanh", _F.hardtanh, ("min", -1.0), ("max", 1.0))
Tanhshrink = _holder("Tanhshrink", _F.tanhshrink)
ThresholdedReLU = _holder("ThresholdedReLU", _F.thresholded_relu, ("threshold", 1.0))
Maxout = _holder("Maxout", _F.maxout, ("groups", _REQUIRED), ("axis", 1))
Softmax = _holder("Softmax", _F.softmax, ("axis", -1))
LogSoftmax = _holder("LogSoftmax", _F.log_softmax, ("axis", -1))

MaxPool2D = _holder("MaxPool2D", _F.max_pool2d, ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0),
                    ("return_mask", False), ("ceil_mode", False), ("data_format", "NCHW"))
AvgPool2D = _holder("AvgPool2D", _F.avg_pool2d, ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0),
                    ("ceil_mode", False), ("exclusive", True), ("divisor_override", None), ("data_format", "NCHW"))
AdaptiveAvgPool2D = _holder("AdaptiveAvgPool2D", _F.adaptive_avg_pool2d, ("output_size", _REQUIRED),
                            ("data_format", "NCHW"))
AdaptiveMaxPool2D = _holder("AdaptiveMaxPool2D", _F.adaptive_max_pool2d, ("output_size", _REQUIRED),
                            ("return_mask", False))
MaxPool1D = _holder("MaxPool1D", _F.max_pool1d, ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0),
                    ("return_mask", False), ("ceil_mode", False))
AvgPool1D = _holder("AvgPool1D", _F.avg_pool1d, ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0),
                    ("exclusive", True), ("ceil_mode", False))
AdaptiveAvgPool1D = _holder("AdaptiveAvgPool1D", _F.adaptive_avg_pool1d, ("output_size", _REQUIRED))
AdaptiveMaxPool1D = _holder("AdaptiveMaxPool1D", _F.adaptive_max_pool1d, ("output_size", _REQUIRED),
                            ("return_mask", False))
MaxPool3D = _holder("MaxPool3D", _F.max_pool3d, ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0),
                    ("return_mask", False), ("ceil_mode", False), ("data_format", "NCDHW"))
AvgPool3D = _holder("AvgPool3D", _F.avg_pool3d, ("kernel_size", _REQUIRED), ("stride", None), ("padding", 0),
                    ("ceil_mode", False), ("exclusive", True), ("divisor_override", None), ("data_format", "NCDHW"))
AdaptiveAvgPool3D = _holder("AdaptiveAvgPool3D", _F.adaptive_avg_pool3d, ("output_size", _REQUIRED), ("data_format", "NCDHW"))
AdaptiveMaxPool3D = _holder("AdaptiveMaxPool3D", _F.adaptive_max_pool3d, ("output_size", _REQUIRED), ("return_mask", False))
Pad1D = _holder("Pad1D", _F.pad, ("pad", _REQUIRED), ("mode", "constant"), ("value", 0.0), ("data_format", "NCL"))
Pad2D = _holder("Pad2D", _F.pad, ("pad", _REQUIRED), ("mode", "constant"), ("value", 0.0), ("data_format", "NCHW"))
ZeroPad2D = _holder("ZeroPad2D", _F.pad, ("pad", _REQUIRED), ("data_format", "NCHW"))
Upsample = _holder("Upsample", _F.interpolate, ("size", None), ("scale_factor", None), ("mode", "nearest"),
                   ("align_corners", False), ("align_mode", 0), ("data_format", "NCHW"))
UpsamplingNearest2D = _holder("UpsamplingNearest2D", _F.interpolate, ("size", None), ("scale_factor", None),
                              ("data_format", "NCHW"))
UpsamplingBilinear2D = _holder("UpsamplingBilinear2D", lambda x, **o: _F.interpolate(x, mode="bilinear",
                               align_corners=True, **o), ("size", None), ("scale_factor", None), ("data_format", "NCHW"))
PairwiseDistance = _holder("PairwiseDistance", _F.pairwise_distance, ("p", 2.0), ("epsilon", 1e-6), ("keepdim", False))
PixelShuffle = _holder("PixelShuffle", _F.pixel_shuffle, ("upscale_factor", _REQUIRED), ("data_format", "NCHW"))
LocalResponseNorm = _holder("LocalResponseNorm", _F.local_response_norm, ("size", _REQUIRED), ("alpha", 0.0001),
                            ("beta", 0.75), ("k", 1.0), ("data_format", "NCHW"))
CosineSimilarity = _holder("CosineSimilarity", _F.cosine_similarity, ("axis", 1), ("eps", 1e-8))

CrossEntropyLoss = _holder("CrossEntropyLoss", _F.cross_entropy, ("weight", None), ("ignore_index", -100),
                           ("reduction", "mean"), ("soft_label", False), ("axis", -1), ("use_softmax", True))
Unfold = _holder("Unfold", _F.unfold, ("kernel_sizes", _REQUIRED), ("strides", 1), ("paddings", 0), ("dilations", 1))
MSELoss = _holder("MSELoss", _F.mse_loss, ("reduction", "mean"))
L1Loss = _holder("L1Loss", _F.l1_loss, ("reduction", "mean"))
SmoothL1Loss = _holder("SmoothL1Loss", _F.smooth_l1_loss, ("reduction", "mean"), ("delta", 1.0))
NLLLoss = _holder("NLLLoss", _F.nll_loss, ("weight", None), ("ignore_index", -100), ("reduction", "mean"))
BCELoss = _holder("BCELoss", _F.binary_cross_entropy, ("weight", None), ("reduction", "mean"))
BCEWithLogitsLoss = _holder("BCEWithLogitsLoss", _F.binary_cross_entropy_with_logits, ("weight", None),
                            ("reduction", "mean"), ("pos_weight", None))
KLDivLoss = _holder("KLDivLoss", _F.kl_div, ("reduction", "mean"))
MarginRankingLoss = _holder("MarginRankingLoss", _F.margin_ranking_loss, ("margin", 0.0), ("reduction", "mean"))
CosineEmbeddingLoss = _holder("CosineEmbeddingLoss", _F.cosine_embedding_loss, ("margin", 0.0), ("reduction", "mean"))
HingeEmbeddingLoss = _holder("HingeEmbeddingLoss", _F.hinge_embedding_loss, ("margin", 1.0), ("reduction", "mean"))

_refused = _refuse.getter(__name__, {
    "Conv3DTranspose": "Conv2DTranspose",
    "Conv1DTranspose": "Conv2DTranspose", "InstanceNorm3D": "InstanceNorm2D",
    "Dropout2D": "Dropout", "Dropout3D": "Dropout", "AlphaDropout": "Dropout",
    "SpectralNorm": "nothing", "CTCLoss": "CrossEntropyLoss", "HSigmoidLoss": "CrossEntropyLoss", "Pad3D": "Pad2D",
    "Fold": "Conv2DTranspose",
    "ChannelShuffle": "paddle.transpose", "PixelUnshuffle": "paddle.transpose",
    "MaxUnPool2D": "Upsample", "TripletMarginLoss": "MarginRankingLoss"},
    lazy={"utils": "paddle.nn.utils", "decode": "paddle.nn.decode", **{name: f"paddle.nn.layer.{name}" for name in (
        "activation", "common", "container", "conv", "distance", "loss", "norm", "pooling", "rnn", "transformer", "vision")}})


def __getattr__(name):
    if name in ("BeamSearchDecoder", "dynamic_decode"):
        from paddle.nn import decode
        return getattr(decode, name)
    return _refused(name)


__getattr__.lazy = _refused.lazy  # for the type stubs
