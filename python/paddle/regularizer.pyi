# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

class L1Decay(WeightDecayRegularizer):
    key: str


class L2Decay(WeightDecayRegularizer):
    key: str


class WeightDecayRegularizer:
    def __init__(self, coeff: Any = 0.0) -> None: ...
    @property
    def coeff(self) -> Any: ...
    def options(self) -> Any: ...
