# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

class L1Decay(WeightDecayRegularizer):
    key: Any


class L2Decay(WeightDecayRegularizer):
    key: Any


class WeightDecayRegularizer:
    def __init__(self, coeff: Any = 0.0) -> None: ...
    @property
    def coeff(self) -> Any: ...
    def options(self) -> Any: ...
