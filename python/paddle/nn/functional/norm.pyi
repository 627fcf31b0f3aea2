# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle._graph import as_list as as_list
from paddle._graph import call as call
from paddle._graph import emit as emit
from paddle.nn.functional.conv import in_nchw as in_nchw
from paddle.tensor import manipulation as manipulation
from paddle.tensor import math as math

def batch_norm(x: Variable, running_mean: Any, running_var: Any, weight: Variable, bias: Variable, training: bool = False, momentum: float = 0.9, epsilon: float = 1e-05, data_format: str | None = 'NCHW', use_global_stats: Any = None, name: str | None = None) -> Variable: ...
def group_norm(x: Variable, num_groups: Any, epsilon: float = 1e-05, weight: Variable | None = None, bias: Variable | None = None, data_format: str | None = 'NCHW', name: str | None = None) -> Variable: ...
def instance_norm(x: Variable, running_mean: Any = None, running_var: Any = None, weight: Variable | None = None, bias: Variable | None = None, use_input_stats: Any = True, momentum: float = 0.9, eps: Any = 1e-05, data_format: str | None = 'NCHW', name: str | None = None) -> Variable: ...
def layer_norm(x: Variable, normalized_shape: Any, weight: Variable | None = None, bias: Variable | None = None, epsilon: float = 1e-05, name: str | None = None) -> Variable: ...
def local_response_norm(x: Variable, size: int | Sequence[int], alpha: float = 0.0001, beta: Any = 0.75, k: Any = 1.0, data_format: str | None = 'NCHW', name: str | None = None) -> Variable: ...
