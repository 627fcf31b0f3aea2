# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Parameter as Parameter
from paddle._graph import Program as Program
from paddle._graph import Variable as Variable
from paddle.distributed.fleet.optimizer import DistributedOptimizer as DistributedOptimizer
from paddle.distributed.fleet.optimizer import DistributedOptimizer as _paddle_distributed_fleet_optimizer_DistributedOptimizer
from paddle.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy
from paddle.static.amp import bf16 as bf16

DTypeLike = str | type | numpy.dtype

class CustomOpLists:
    custom_white_list: Any
    custom_black_list: Any
    black_varnames: Any
    def __init__(self, custom_white_list: Any = None, custom_black_list: Any = None, custom_black_varnames: Any = None) -> None: ...
    def settings(self) -> Any: ...


class OptimizerWithMixedPrecision(_paddle_distributed_fleet_optimizer_DistributedOptimizer):
    def __init__(self, optimizer: Any, settings: Any) -> None: ...
    def added_to(self, strategy: Any) -> Any: ...
    def backward(self, loss: Variable, startup_program: Program | None = None, parameters: Sequence[Parameter | str] | None = None, no_grad_set: Any = None, callbacks: Any = None) -> Any: ...
    def apply_gradients(self, params_grads: Any) -> Any: ...
    def apply_optimize(self, params_grads: Any) -> Any: ...  # type: ignore[override]
def cast_model_to_fp16(program: Program | None, amp_lists: Any = None, use_fp16_guard: Any = True) -> Any: ...
def cast_parameters_to_fp16(place: Any, program: Program | None, scope: Any = None, to_fp16_var_names: Any = None) -> Any: ...
def decorate(optimizer: Any, amp_lists: Any = None, init_loss_scaling: Any = 32768, incr_every_n_steps: Any = 1000, decr_every_n_nan_or_inf: Any = 2, incr_ratio: Any = 2.0, decr_ratio: Any = 0.8, use_dynamic_loss_scaling: Any = True, use_pure_fp16: Any = False, use_fp16_guard: Any = None, use_bf16: Any = False, *, dtype: DTypeLike = 'bfloat16', level: Any = None) -> Any: ...
def fp16_guard() -> AbstractContextManager[Any]: ...
AutoMixedPrecisionLists = CustomOpLists
