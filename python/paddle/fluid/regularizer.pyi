# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.regularizer import L1Decay as _paddle_regularizer_L1Decay
from paddle.regularizer import L2Decay as _paddle_regularizer_L2Decay
from paddle.regularizer import WeightDecayRegularizer as WeightDecayRegularizer

class L1Decay(_paddle_regularizer_L1Decay):
    def __init__(self, regularization_coeff: Any = 0.0) -> None: ...


class L2Decay(_paddle_regularizer_L2Decay):
    def __init__(self, regularization_coeff: Any = 0.0) -> None: ...
L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
