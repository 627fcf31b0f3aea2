# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn.initializer import Assign as _paddle_nn_initializer_Assign
from paddle.nn.initializer import Bilinear as Bilinear
from paddle.nn.initializer import Bilinear as BilinearInitializer
from paddle.nn.initializer import Constant as _paddle_nn_initializer_Constant
from paddle.nn.initializer import Initializer as Initializer
from paddle.nn.initializer import Normal as _paddle_nn_initializer_Normal
from paddle.nn.initializer import TruncatedNormal as _paddle_nn_initializer_TruncatedNormal
from paddle.nn.initializer import Uniform as _paddle_nn_initializer_Uniform
from paddle.nn.initializer import _Kaiming as _paddle_nn_initializer__Kaiming
from paddle.nn.initializer import _Xavier as _paddle_nn_initializer__Xavier
from paddle.nn.initializer import set_global_initializer as set_global_initializer

class Constant(_paddle_nn_initializer_Constant):
    def __init__(self, value: Any = 0.0, force_cpu: Any = False) -> None: ...


class MSRA(_paddle_nn_initializer__Kaiming):
    def __init__(self, uniform: Any = True, fan_in: Any = None, seed: Any = 0) -> None: ...


class Normal(_paddle_nn_initializer_Normal):
    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, seed: Any = 0) -> None: ...


class NumpyArrayInitializer(_paddle_nn_initializer_Assign):
    ...


class TruncatedNormal(_paddle_nn_initializer_TruncatedNormal):
    def __init__(self, loc: Any = 0.0, scale: Any = 1.0, seed: Any = 0) -> None: ...


class Uniform(_paddle_nn_initializer_Uniform):
    def __init__(self, low: Any = -1.0, high: Any = 1.0, seed: Any = 0, diag_num: Any = 0, diag_step: Any = 0, diag_val: Any = 1.0) -> None: ...


class Xavier(_paddle_nn_initializer__Xavier):
    def __init__(self, uniform: Any = True, fan_in: Any = None, fan_out: Any = None, seed: Any = 0) -> None: ...
def force_init_on_cpu() -> Any: ...
def init_on_cpu() -> AbstractContextManager[Any]: ...
ConstantInitializer = Constant
MSRAInitializer = MSRA
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
UniformInitializer = Uniform
XavierInitializer = Xavier
