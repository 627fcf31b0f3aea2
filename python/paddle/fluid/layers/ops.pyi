# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.layers.nn import brelu as brelu
from paddle.fluid.layers.nn import hard_sigmoid as hard_sigmoid
from paddle.fluid.layers.nn import hard_swish as hard_swish
from paddle.fluid.layers.nn import soft_relu as soft_relu
from paddle.fluid.layers.nn import softplus as softplus
from paddle.fluid.layers.nn import softshrink as softshrink
from paddle.fluid.layers.nn import swish as swish
from paddle.fluid.layers.nn import uniform_random as uniform_random
from paddle.nn.functional.activation import gelu as gelu
from paddle.nn.functional.activation import hardshrink as hard_shrink
from paddle.nn.functional.activation import log_sigmoid as logsigmoid
from paddle.nn.functional.activation import relu as relu
from paddle.nn.functional.activation import selu as selu
from paddle.nn.functional.activation import sigmoid as sigmoid
from paddle.nn.functional.activation import softsign as softsign
from paddle.nn.functional.activation import tanh as tanh
from paddle.nn.functional.activation import tanhshrink as tanh_shrink
from paddle.nn.functional.activation import thresholded_relu as thresholded_relu
from paddle.tensor.math import abs as abs
from paddle.tensor.math import acos as acos
from paddle.tensor.math import asin as asin
from paddle.tensor.math import atan as atan
from paddle.tensor.math import ceil as ceil
from paddle.tensor.math import cos as cos
from paddle.tensor.math import cosh as cosh
from paddle.tensor.math import erf as erf
from paddle.tensor.math import exp as exp
from paddle.tensor.math import floor as floor
from paddle.tensor.math import log as log
from paddle.tensor.math import reciprocal as reciprocal
from paddle.tensor.math import round as round
from paddle.tensor.math import rsqrt as rsqrt
from paddle.tensor.math import sign as sign
from paddle.tensor.math import sin as sin
from paddle.tensor.math import sinh as sinh
from paddle.tensor.math import sqrt as sqrt
from paddle.tensor.math import square as square
from paddle.tensor.math import stanh as stanh
