"""Functions of one variable, by the module of 1.x that made them."""
from paddle import _refuse
from paddle.fluid import layers as _layers
from paddle.fluid.layers.nn import (acos, asin, atan, brelu, erf, gelu, hard_shrink, hard_sigmoid, hard_swish,  # noqa: F401
                                    logsigmoid, relu, selu, sigmoid, soft_relu, softplus, softshrink, softsign, stanh,
                                    swish, tanh, tanh_shrink, thresholded_relu, uniform_random)
from paddle.tensor.math import abs, ceil, cos, exp, floor, log, reciprocal, round, rsqrt, sign, sin, sqrt, square  # noqa: F401
from paddle.tensor.math import cosh, sinh  # noqa: F401

__getattr__ = _refuse.getter(__name__, _layers._REFUSED)
