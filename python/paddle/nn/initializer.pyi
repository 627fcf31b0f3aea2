# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from paddle._graph import Variable as Variable





class Assign(Initializer):
    def __init__(self, value: Any, name: str | None = None) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class Constant(Initializer):
    def __init__(self, value: Any = 0.0) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class KaimingNormal:
    def __init__(self, fan_in: Any = None, negative_slope: Any = 0.0, nonlinearity: Any = 'relu') -> None: ...


class KaimingUniform:
    def __init__(self, fan_in: Any = None, negative_slope: Any = 0.0, nonlinearity: Any = 'relu') -> None: ...


class Normal(Initializer):
    def __init__(self, mean: Any = 0.0, std: Any = 1.0, name: str | None = None, seed: Any = 0) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class TruncatedNormal(Normal):
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class Uniform(Initializer):
    def __init__(self, low: Any = -1.0, high: Any = 1.0, name: str | None = None, seed: Any = 0) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class XavierNormal:
    def __init__(self, fan_in: Any = None, fan_out: Any = None, name: str | None = None) -> None: ...


class XavierUniform:
    def __init__(self, fan_in: Any = None, fan_out: Any = None, name: str | None = None) -> None: ...


def set_global_initializer(weight_init: Any, bias_init: Any = None) -> Any: ...
