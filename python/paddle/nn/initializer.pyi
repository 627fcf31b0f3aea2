# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle.utils import unique_name as unique_name

class Assign(Initializer):
    value: Any
    def __init__(self, value: Any, name: str | None = None) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class Bilinear(Initializer):
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class Constant(Initializer):
    value: Any
    def __init__(self, value: Any = 0.0) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class Initializer:
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...
    def __call__(self, param: Any, block: Any = None) -> Any: ...
    def fill(self, startup: Any, variable: Any) -> Any: ...


class KaimingNormal(_Kaiming):
    def __init__(self, fan_in: Any = None, negative_slope: Any = 0.0, nonlinearity: Any = 'relu') -> None: ...


class KaimingUniform(_Kaiming):
    def __init__(self, fan_in: Any = None, negative_slope: Any = 0.0, nonlinearity: Any = 'relu') -> None: ...


class Normal(Initializer):
    mean: Any
    std: Any
    seed: Any
    def __init__(self, mean: Any = 0.0, std: Any = 1.0, name: str | None = None, seed: Any = 0) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class TruncatedNormal(Normal):
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class Uniform(Initializer):
    low: Any
    high: Any
    seed: Any
    def __init__(self, low: Any = -1.0, high: Any = 1.0, name: str | None = None, seed: Any = 0) -> None: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class XavierNormal(_Xavier):
    def __init__(self, fan_in: Any = None, fan_out: Any = None, name: str | None = None) -> None: ...


class XavierUniform(_Xavier):
    def __init__(self, fan_in: Any = None, fan_out: Any = None, name: str | None = None) -> None: ...


class _Kaiming(_Scaled):
    fan_in: Any
    gain: Any
    def __init__(self, uniform: Any, fan_in: Any = None, seed: Any = 0, gain: Any = 1.4142135623730951) -> None: ...
    def variance(self, shape: Sequence[int | None | Variable]) -> Any: ...


class _Scaled(Initializer):
    uniform: Any
    seed: Any
    def __init__(self, uniform: Any, seed: Any = 0) -> None: ...
    def variance(self, shape: Sequence[int | None | Variable]) -> Any: ...
    def options(self, shape: Sequence[int | None | Variable]) -> Any: ...


class _Xavier(_Scaled):
    fan_in: Any
    fan_out: Any
    def __init__(self, uniform: Any, fan_in: Any = None, fan_out: Any = None, seed: Any = 0) -> None: ...
    def variance(self, shape: Sequence[int | None | Variable]) -> Any: ...
def default_for(is_bias: Any, fallback: Any = None) -> Any: ...
def fans(shape: Sequence[int | None | Variable]) -> Any: ...
def set_global_initializer(weight_init: Any, bias_init: Any = None) -> Any: ...
