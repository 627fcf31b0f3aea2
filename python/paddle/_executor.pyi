# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle._graph import Variable as Variable
from paddle._lod_tensor import LoDTensor as LoDTensor
from paddle._lod_tensor import LoDTensor as _paddle__lod_tensor_LoDTensor
from paddle._places import CPUPlace as CPUPlace
from paddle._places import CUDAPinnedPlace as CUDAPinnedPlace
from paddle._places import CUDAPlace as CUDAPlace
from paddle._places import XPUPlace as XPUPlace
from paddle._places import cpu_places as cpu_places
from paddle._places import cuda_places as cuda_places
from paddle._places import is_compiled_with_cuda as is_compiled_with_cuda

class BuildStrategy(_Settings):
    ReduceStrategy: Any
    GradientScaleStrategy: Any
    enable_sequential_execution: bool
    fuse_elewise_add_act_ops: bool
    fuse_bn_act_ops: bool
    fuse_bn_add_act_ops: bool
    fuse_relu_depthwise_conv: bool
    fuse_broadcast_ops: bool
    fuse_all_optimizer_ops: bool
    fuse_all_reduce_ops: bool
    sync_batch_norm: bool
    enable_inplace: bool
    enable_backward_optimizer_op_deps: bool
    cache_runtime_context: bool
    enable_auto_fusion: bool
    enable_addto: bool
    memory_optimize: Any
    remove_unnecessary_lock: bool
    debug_graphviz_path: str
    num_trainers: int
    trainer_id: int
    trainers_endpoints: Any
    async_mode: bool
    is_distribution: bool
    hierarchical_allreduce_inter_nranks: int
    use_hierarchical_allreduce: bool
    nccl_comm_num: int
    reduce_strategy: int
    gradient_scale_strategy: int


class CompiledProgram:
    def __init__(self, program_or_graph: Any, build_strategy: Any = None) -> None: ...
    def with_data_parallel(self, loss_name: Any = None, build_strategy: Any = None, exec_strategy: Any = None, share_vars_from: Any = None, places: Any = None) -> CompiledProgram: ...
    def with_inference_optimize(self, config: Any) -> Any: ...


class EOFException:
    ...


class ExecutionStrategy(_Settings):
    num_threads: int
    num_iteration_per_drop_scope: int
    num_iteration_per_run: int
    use_thread_barrier: bool
    use_experimental_executor: bool
    allow_op_delay: bool


class Executor:
    place: Any
    def __init__(self, place: Any = None) -> None: ...
    at_close: Any
    def close(self) -> None: ...
    def run(self, program: Program | None = None, feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, fetch_list: Sequence[Variable | str] | None = None, feed_var_name: Any = 'feed', fetch_var_name: Any = 'fetch', scope: Any = None, return_numpy: bool = True, use_program_cache: Any = False, return_merged: Any = True, use_prune: Any = False) -> list[numpy.ndarray]: ...
    def plan(self, program: Program | None, feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None, fetch_list: Sequence[Variable | str] | None, scope: Any = None) -> Any: ...
    def train_from_dataset(self, program: Program | None = None, dataset: Any = None, scope: Any = None, thread: Any = 0, debug: Any = False, fetch_list: Sequence[Variable | str] | None = None, fetch_info: Any = None, print_period: Any = 100, fetch_handler: Any = None) -> None: ...
    def infer_from_dataset(self, program: Program | None = None, dataset: Any = None, scope: Any = None, thread: Any = 0, debug: Any = False, fetch_list: Sequence[Variable | str] | None = None, fetch_info: Any = None, print_period: Any = 100, fetch_handler: Any = None) -> Any: ...


class FetchHandler:
    var_dict: Any
    period_secs: Any
    def __init__(self, var_dict: Any = None, period_secs: Any = 60, return_np: Any = True) -> None: ...
    def handler(self, res_dict: Any) -> Any: ...


class Scope:
    native: Any
    def __init__(self) -> None: ...
    def find_var(self, name: str | None) -> ScopeVariable: ...
    def var(self, name: str | None) -> ScopeVariable: ...
    def local_var_names(self) -> Any: ...
    def erase(self, names: Any) -> Any: ...
    def new_scope(self) -> Any: ...
    def drop_kids(self) -> Any: ...


class ScopeTensor(_paddle__lod_tensor_LoDTensor):
    def __init__(self, scope: Any, name: str | None) -> None: ...
    def numpy(self) -> numpy.ndarray: ...
    def set(self, value: Any, place: Any = None) -> Any: ...  # type: ignore[override]
    def shape(self) -> list[int]: ...


class ScopeVariable:
    name: str
    def __init__(self, scope: Any, name: str | None) -> None: ...
    def get_tensor(self) -> ScopeTensor: ...
    def get_value(self) -> Any: ...


class _OneNumber:
    ...


class _Settings:
    def __setattr__(self, name: str, value: Any) -> None: ...
def global_scope() -> Scope: ...
def scope_guard(scope: Any) -> AbstractContextManager[Any]: ...
