"""Layers that the original has once more, fused; the planner fuses ops here."""
from paddle import _refuse
from paddle.nn import Linear
from paddle._native import native

__all__ = ["FusedLinear"]


class FusedLinear(Linear):
    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, transpose_weight=False, name=None):
        if transpose_weight:
            raise native.UnsupportedError("FusedLinear: transpose_weight=True is not here; the weight is [in, out]")
        super().__init__(in_features, out_features, weight_attr, bias_attr, name)


__getattr__ = _refuse.getter(__name__, {
    "FusedMultiHeadAttention": "paddle.nn.MultiHeadAttention", "FusedFeedForward": "paddle.nn.Linear twice",
    "FusedTransformerEncoderLayer": "paddle.nn.TransformerEncoderLayer", "functional": "paddle.nn.functional"})
