# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Parameter as Parameter
from paddle._graph import Program as Program
from paddle._graph import Variable as Variable
from paddle.tensor import creation as creation
from paddle.tensor import logic as logic
from paddle.tensor import manipulation as manipulation
from paddle.tensor import math as math
from paddle.utils import unique_name as unique_name

class ExponentialMovingAverage(_Applied):
    def __init__(self, decay: Any = 0.999, thres_steps: Any = None, name: str | None = None) -> None: ...
    def update(self) -> Any: ...


class Lookahead:
    inner_optimizer: Any
    alpha: Any
    k: Any
    def __init__(self, inner_optimizer: Any, alpha: float = 0.5, k: int = 5, name: str | None = None) -> None: ...
    def minimize(self, loss: Variable, startup_program: Program | None = None, parameters: Sequence[Parameter | str] | None = None, no_grad_set: Any = None) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...


class ModelAverage(_Applied):
    def __init__(self, average_window_rate: Any, min_average_window: Any = 10000, max_average_window: Any = 10000, regularization: Any = None, name: str | None = None, parameters: Sequence[Parameter | str] | None = None) -> None: ...


class _Applied:
    def __init__(self) -> None: ...
    def apply(self, executor: Any, need_restore: Any = True) -> Any: ...
    def restore(self, executor: Any) -> Any: ...
