# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from paddle.nn.initializer import Initializer as Initializer
from paddle.nn.initializer import set_global_initializer as set_global_initializer

class Constant(Constant):
    def __init__(self, value: Any = 0.0, force_cpu: Any = False) -> None: ...


class MSRA:
    def __init__(self, uniform: Any = True, fan_in: Any = None, seed: Any = 0) -> None: ...


class Normal(Normal):
    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, seed: Any = 0) -> None: ...


class NumpyArrayInitializer:
    ...


class TruncatedNormal(TruncatedNormal):
    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, seed: Any = 0) -> None: ...


class Uniform(Uniform):
    def __init__(self, low: Any = -1.0, high: Any = 1.0, seed: Any = 0, diag_num: Any = 0, diag_step: Any = 0, diag_val: Any = 1.0) -> None: ...


class Xavier:
    def __init__(self, uniform: Any = True, fan_in: Any = None, fan_out: Any = None, seed: Any = 0) -> None: ...
ConstantInitializer = Constant
MSRAInitializer = MSRA
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
UniformInitializer = Uniform
XavierInitializer = Xavier
