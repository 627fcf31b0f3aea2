"""Functions that build networks, with parameters given."""
from paddle import _refuse
from paddle.nn.functional import _volumes, activation, common, conv, loss, norm
from paddle.nn.functional.activation import *  # noqa: F401,F403
from paddle.nn.functional.common import *  # noqa: F401,F403
from paddle.nn.functional.conv import *  # noqa: F401,F403
from paddle.nn.functional._volumes import *  # noqa: F401,F403
from paddle.nn.functional.loss import *  # noqa: F401,F403
from paddle.nn.functional.norm import *  # noqa: F401,F403
from paddle.tensor.creation import assign  # noqa: F401
from paddle.tensor.manipulation import gather, shape  # noqa: F401

__all__ = activation.__all__ + common.__all__ + conv.__all__ + _volumes.__all__ + loss.__all__ + norm.__all__

__getattr__ = _refuse.getter(__name__, {
    "conv3d_transpose": "conv2d_transpose", "conv1d_transpose": "conv2d_transpose", "ctc_loss": "cross_entropy", "hsigmoid_loss": "cross_entropy",
    "npair_loss": "margin_ranking_loss", "affine_grid": "nothing", "grid_sample": "nothing",
    "temporal_shift": "nothing", "gather_tree": "nothing", "diag_embed": "paddle.eye", "sparse_attention": "softmax",
    "gumbel_softmax": "softmax", "rrelu": "leaky_relu", "triplet_margin_loss": "margin_ranking_loss",
    "zeropad2d": "pad", "fold": "conv2d_transpose", "class_center_sample": "nothing",
    "margin_cross_entropy": "cross_entropy", "scaled_dot_product_attention": "paddle.nn.MultiHeadAttention"})
