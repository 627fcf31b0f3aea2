# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._executor import BuildStrategy as BuildStrategy
from paddle._executor import CompiledProgram as CompiledProgram
from paddle._executor import ExecutionStrategy as ExecutionStrategy
from paddle._executor import Executor as Executor
from paddle._executor import Scope as Scope
from paddle._executor import global_scope as global_scope
from paddle._executor import scope_guard as scope_guard
from paddle._graph import Parameter as Parameter
from paddle._graph import Program as Program
from paddle._graph import as_list as as_list
from paddle._graph import default_main_program as default_main_program
from paddle._graph import default_startup_program as default_startup_program
from paddle._graph import program_guard as program_guard
from paddle._native import user_line as user_line
from paddle._param import ParamAttr as ParamAttr
from paddle._param import WeightNormParamAttr as WeightNormParamAttr
from paddle._places import cpu_places as cpu_places
from paddle._places import cuda_places as cuda_places
from paddle._variable import Variable as Variable
from paddle.metric import accuracy as accuracy
from paddle.metric import auc as auc
from paddle.optimizer._averages import ExponentialMovingAverage as ExponentialMovingAverage
from paddle.static import amp as amp
from paddle.static import io as io
from paddle.static import nn as nn
from paddle.static.io import deserialize_persistables as deserialize_persistables
from paddle.static.io import deserialize_program as deserialize_program
from paddle.static.io import load as load
from paddle.static.io import load_from_file as load_from_file
from paddle.static.io import load_inference_model as load_inference_model
from paddle.static.io import load_program_state as load_program_state
from paddle.static.io import normalize_program as normalize_program
from paddle.static.io import save as save
from paddle.static.io import save_inference_model as save_inference_model
from paddle.static.io import save_to_file as save_to_file
from paddle.static.io import serialize_persistables as serialize_persistables
from paddle.static.io import serialize_program as serialize_program
from paddle.static.io import set_program_state as set_program_state
from paddle.tensor.creation import create_global_var as create_global_var
from paddle.tensor.creation import create_parameter as create_parameter

DTypeLike = str | type | numpy.dtype

class InputSpec:
    shape: Any
    dtype: Any
    name: str
    def __init__(self, shape: Sequence[int | None | Variable], dtype: DTypeLike = 'float32', name: str | None = None) -> None: ...
def Print(input: Variable, first_n: Any = -1, message: str | None = None, summarize: Any = 20, print_tensor_name: Any = True, print_tensor_type: Any = True, print_tensor_shape: Any = True, print_tensor_layout: Any = True, print_tensor_lod: Any = True, print_phase: Any = 'both') -> Any: ...


class _Nothing:
    def __enter__(self) -> Any: ...
    def __exit__(self, *args: Any) -> bool: ...
def append_backward(loss: Variable, parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None, callbacks: Any = None, checkpoints: Any = None) -> list[tuple[Parameter, Variable]]: ...
def data(name: str | None, shape: Sequence[int | None], dtype: DTypeLike | None = None, lod_level: Any = 0) -> Variable: ...
def device_guard(device: Any = None) -> Any: ...
def gradients(targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None) -> list[Variable]: ...
def load_vars(executor: Any, dirname: str | None, main_program: Program | None = None, vars: Any = None, predicate: Any = None, filename: Any = None) -> None: ...
def name_scope(prefix: Any = None) -> Any: ...
def save_vars(executor: Any, dirname: str | None, main_program: Program | None = None, vars: Any = None, predicate: Any = None, filename: Any = None) -> None: ...
