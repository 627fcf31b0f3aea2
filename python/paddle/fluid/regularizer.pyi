# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

class L1Decay(L1Decay):
    def __init__(self, regularization_coeff: Any = 0.0) -> None: ...


class L2Decay(L2Decay):
    def __init__(self, regularization_coeff: Any = 0.0) -> None: ...
L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
