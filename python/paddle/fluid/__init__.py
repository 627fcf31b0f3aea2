"""The names of PaddlePaddle 1.x, for scripts that still use them."""
from paddle import _refuse
from paddle import ParamAttr, get_flags, is_compiled_with_xpu, set_flags  # noqa: F401
from paddle._executor import (BuildStrategy, CompiledProgram, CPUPlace, CUDAPinnedPlace, CUDAPlace,  # noqa: F401
                              ExecutionStrategy, Executor, LoDTensor, Scope, cpu_places, cuda_places, global_scope,
                              is_compiled_with_cuda, scope_guard)
from paddle._graph import (Program, Variable, default_main_program, default_startup_program,  # noqa: F401
                           program_guard)
from paddle._param import WeightNormParamAttr  # noqa: F401
from paddle.fluid import (backward, clip, compiler, core, data_feeder, executor, framework, initializer, io,  # noqa: F401
                          layers, metrics, nets, optimizer, param_attr, regularizer, unique_name)
from paddle.fluid import layer_helper, lod_tensor, parallel_executor  # noqa: F401
from paddle.fluid.data_feeder import DataFeeder  # noqa: F401
from paddle.fluid.lod_tensor import create_lod_tensor, create_random_int_lodtensor  # noqa: F401
from paddle.fluid.parallel_executor import ParallelExecutor  # noqa: F401
from paddle.fluid.transpiler import DistributeTranspiler, DistributeTranspilerConfig, InferenceTranspiler  # noqa: F401
from paddle.io import DataLoader, PyReader  # noqa: F401
from paddle.static import data, device_guard, gradients, load, name_scope, save  # noqa: F401
from paddle.static.nn import embedding  # noqa: F401
from paddle.fluid.input import one_hot  # noqa: F401

from paddle._lod_tensor import LoDTensorArray  # noqa: F401
from paddle._places import XPUPlace, cuda_pinned_places  # noqa: F401

Tensor = LoDTensor


def in_dygraph_mode():
    return False


def require_version(min_version, max_version=None):
    """FleetX serves the calls that it lists, whatever their version."""


def memory_optimize(input_program, skip_opt_set=None, print_log=False, level=0, skip_grads=False):
    """Memory is always planned: there is nothing to do."""


def release_memory(input_program, skip_opt_set=None):
    """Memory is always planned: there is nothing to do."""

_refused = _refuse.getter(__name__, {
    "recordio_writer": "paddle.io.DataLoader.from_generator",
    "load_op_library": "an op in C++: docs/add-an-op.md",
    "enable_dygraph": "static programs", "enable_imperative": "static programs",
    "evaluator": "metrics", "net_drawer": "debugger.draw_block_graphviz", "graphviz": "debugger.draw_block_graphviz",
    "AsyncExecutor": "Executor.train_from_dataset", "DataFeedDesc": "DatasetFactory().create_dataset(), and its set_use_var",
    "ir": "nothing: programs are rewritten by strategies only (docs/strategy.md)",
    "trainer_desc": "nothing"},
    lazy={"debugger": "paddle.fluid.debugger", "incubate": "paddle.fluid.incubate", "average": "paddle.fluid.average", "dataset": "paddle.fluid.dataset",
          "reader": "paddle.io",
          "contrib": "paddle.fluid.contrib", "install_check": "paddle.fluid.install_check", "input": "paddle.fluid.input",
          "log_helper": "paddle.fluid.log_helper", "dygraph": "paddle.fluid.dygraph", "profiler": "paddle.fluid.profiler",
          "transpiler": "paddle.fluid.transpiler"})


def __getattr__(name):
    if name == "DatasetFactory":
        from paddle.distributed.fleet.dataset import DatasetFactory
        return DatasetFactory
    if name in ("Trainer", "Inferencer", "CheckpointConfig", "BeginEpochEvent", "EndEpochEvent", "BeginStepEvent", "EndStepEvent"):
        from paddle.fluid.contrib import trainer
        return getattr(trainer, name)
    return _refused(name)
