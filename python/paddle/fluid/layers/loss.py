"""Losses, by the module of 1.x."""
from paddle import _refuse
from paddle.fluid import layers as _layers
from paddle.fluid.layers.nn import (cross_entropy, huber_loss, kldiv_loss, margin_rank_loss, mse_loss, rank_loss,  # noqa: F401
                                    sigmoid_cross_entropy_with_logits, softmax_with_cross_entropy, square_error_cost)

__getattr__ = _refuse.getter(__name__, _layers._REFUSED)
