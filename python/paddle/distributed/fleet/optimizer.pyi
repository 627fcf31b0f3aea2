# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Parameter as Parameter
from paddle._graph import Program as Program
from paddle._graph import as_list as as_list
from paddle._graph import default_startup_program as default_startup_program
from paddle._native import user_line as user_line
from paddle._variable import Variable as Variable
from paddle.tensor import creation as creation

class DistributedOptimizer:
    inner_opt: Any
    user_defined_optimizer: Any
    user_defined_strategy: Any
    applied: Any
    strategy_text: Any
    main_program: Any
    startup_program: Any
    def __init__(self, optimizer: Any, strategy: Any = None, servers: Any = None) -> None: ...
    def minimize(self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None, parameters: Sequence[Parameter | str] | None = None) -> tuple[list[Any], list[tuple[Parameter, Variable]]]: ...
    def backward(self, loss: Variable, startup_program: Program | None = None, parameters: Sequence[Parameter | str] | None = None, no_grad_set: Any = None, callbacks: Any = None) -> Any: ...
    def apply_gradients(self, params_grads: Any) -> Any: ...
    def apply_optimize(self, loss: Variable, startup_program: Program | None, params_grads: Any) -> Any: ...
    def amp_init(self, place: Any, scope: Any = None, test_program: Any = None, use_fp16_test: Any = False) -> Any: ...
    def get_loss_scaling(self) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
