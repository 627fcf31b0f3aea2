# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import get_flags as get_flags
from paddle import is_compiled_with_xpu as is_compiled_with_xpu
from paddle import set_flags as set_flags
from paddle._executor import BuildStrategy as BuildStrategy
from paddle._executor import CompiledProgram as CompiledProgram
from paddle._executor import ExecutionStrategy as ExecutionStrategy
from paddle._executor import Executor as Executor
from paddle._executor import Scope as Scope
from paddle._executor import global_scope as global_scope
from paddle._executor import scope_guard as scope_guard
from paddle._graph import Program as Program
from paddle._graph import default_main_program as default_main_program
from paddle._graph import default_startup_program as default_startup_program
from paddle._graph import program_guard as program_guard
from paddle._lod_tensor import LoDTensor as LoDTensor
from paddle._lod_tensor import LoDTensor as Tensor
from paddle._lod_tensor import LoDTensorArray as LoDTensorArray
from paddle._param import ParamAttr as ParamAttr
from paddle._param import WeightNormParamAttr as WeightNormParamAttr
from paddle._places import CPUPlace as CPUPlace
from paddle._places import CUDAPinnedPlace as CUDAPinnedPlace
from paddle._places import CUDAPlace as CUDAPlace
from paddle._places import XPUPlace as XPUPlace
from paddle._places import cpu_places as cpu_places
from paddle._places import cuda_pinned_places as cuda_pinned_places
from paddle._places import cuda_places as cuda_places
from paddle._places import is_compiled_with_cuda as is_compiled_with_cuda
from paddle._variable import Variable as Variable
from paddle.fluid import backward as backward
from paddle.fluid import clip as clip
from paddle.fluid import compiler as compiler
from paddle.fluid import contrib as contrib
from paddle.fluid import core as core
from paddle.fluid import data_feeder as data_feeder
from paddle.fluid import executor as executor
from paddle.fluid import framework as framework
from paddle.fluid import initializer as initializer
from paddle.fluid import input as input
from paddle.fluid import io as io
from paddle.fluid import layer_helper as layer_helper
from paddle.fluid import layers as layers
from paddle.fluid import lod_tensor as lod_tensor
from paddle.fluid import metrics as metrics
from paddle.fluid import nets as nets
from paddle.fluid import optimizer as optimizer
from paddle.fluid import parallel_executor as parallel_executor
from paddle.fluid import param_attr as param_attr
from paddle.fluid import regularizer as regularizer
from paddle.fluid import transpiler as transpiler
from paddle.fluid import unique_name as unique_name
from paddle.fluid.data_feeder import DataFeeder as DataFeeder
from paddle.fluid.input import one_hot as one_hot
from paddle.fluid.lod_tensor import create_lod_tensor as create_lod_tensor
from paddle.fluid.lod_tensor import create_random_int_lodtensor as create_random_int_lodtensor
from paddle.fluid.parallel_executor import ParallelExecutor as ParallelExecutor
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
from paddle.fluid.transpiler.inference_transpiler import InferenceTranspiler as InferenceTranspiler
from paddle.fluid.transpiler.transpiler import DistributeTranspiler as DistributeTranspiler
from paddle.io import DataLoader as DataLoader
from paddle.io import GeneratorLoader as PyReader
from paddle.static import data as data
from paddle.static import device_guard as device_guard
from paddle.static import gradients as gradients
from paddle.static import name_scope as name_scope
from paddle.static.io import load as load
from paddle.static.io import save as save
from paddle.static.nn import embedding as embedding

def in_dygraph_mode() -> bool: ...
def memory_optimize(input_program: Any, skip_opt_set: Any = None, print_log: Any = False, level: Any = 0, skip_grads: Any = False) -> Any: ...
def release_memory(input_program: Any, skip_opt_set: Any = None) -> Any: ...
def require_version(min_version: Any, max_version: Any = None) -> Any: ...
