# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn import CELU as CELU
from paddle.nn import ELU as ELU
from paddle.nn import GELU as GELU
from paddle.nn import Hardshrink as Hardshrink
from paddle.nn import Hardsigmoid as Hardsigmoid
from paddle.nn import Hardswish as Hardswish
from paddle.nn import Hardtanh as Hardtanh
from paddle.nn import LeakyReLU as LeakyReLU
from paddle.nn import LogSigmoid as LogSigmoid
from paddle.nn import LogSoftmax as LogSoftmax
from paddle.nn import Maxout as Maxout
from paddle.nn import Mish as Mish
from paddle.nn import ReLU as ReLU
from paddle.nn import ReLU6 as ReLU6
from paddle.nn import SELU as SELU
from paddle.nn import Sigmoid as Sigmoid
from paddle.nn import Silu as Silu
from paddle.nn import Softmax as Softmax
from paddle.nn import Softplus as Softplus
from paddle.nn import Softshrink as Softshrink
from paddle.nn import Softsign as Softsign
from paddle.nn import Swish as Swish
from paddle.nn import Tanh as Tanh
from paddle.nn import Tanhshrink as Tanhshrink
from paddle.nn import ThresholdedReLU as ThresholdedReLU
from paddle.nn.layer.common import PReLU as PReLU
