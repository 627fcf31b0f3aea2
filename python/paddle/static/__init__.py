"""Static programs: describe a network once, run it step after step."""
from paddle import _dtype, _graph, _refuse
from paddle._executor import (BuildStrategy, CompiledProgram, ExecutionStrategy, Executor, Scope, cpu_places,
                              cuda_places, global_scope, scope_guard)
from paddle._graph import (Program, Variable, as_list, default_main_program, default_startup_program, program_guard)
from paddle._native import native, user_line
from paddle._param import ParamAttr, WeightNormParamAttr
from paddle.metric import accuracy, auc
from paddle.optimizer._averages import ExponentialMovingAverage
from paddle.static import nn
from paddle.static.io import (deserialize_persistables, deserialize_program, load, load_from_file,
                              load_inference_model, load_program_state, normalize_program, save, save_inference_model,
                              save_to_file, serialize_persistables, serialize_program, set_program_state)
from paddle.tensor.creation import create_global_var, create_parameter

__all__ = ["data", "InputSpec", "Program", "program_guard", "default_main_program", "default_startup_program",
           "Executor", "CompiledProgram", "BuildStrategy", "ExecutionStrategy", "global_scope", "scope_guard", "Scope",
           "save", "load", "save_vars", "load_vars", "save_inference_model", "load_inference_model", "load_program_state", "set_program_state",
           "nn", "accuracy", "auc", "create_global_var", "create_parameter", "append_backward", "gradients", "Print",
           "name_scope", "device_guard", "cpu_places", "cuda_places", "Variable", "ParamAttr", "WeightNormParamAttr"]


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Values of variables (`vars`, or those of the program for which predicate(variable)) in files of their names, or in
    one file."""
    from paddle.fluid import io  # it stands on this module
    io.save_vars(executor, dirname, main_program, vars, predicate, filename)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Reads what save_vars wrote."""
    from paddle.fluid import io
    io.load_vars(executor, dirname, main_program, vars, predicate, filename)


def data(name, shape, dtype=None, lod_level=0):
    """An input of the program. None and -1 are lengths that each batch brings along."""
    dtype = _dtype.convert(dtype or _dtype.get_default_dtype())
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"data '{name}': shape must be a list of lengths (None: unknown), not {shape!r}")
    dims = [-1 if d is None else int(d) for d in as_list(shape)]
    program = _graph.default_main_program()
    if program.ir.has(name):
        known = program.ir.var(name)
        if known["is_data"] and list(program._variable(name).shape) == dims and known["dtype"] == dtype:
            return program._variable(name)
    program.builder().data(name, dtype, dims, *user_line())
    variable = program._variable(name)
    variable.lod_level = lod_level
    if lod_level > 0:
        # Lengths of sequences of sequences are rows of sequences themselves.
        variable.lengths = data(name + _graph.LENGTHS_SUFFIX, [-1], "int64", lod_level - 1)
        program.lengths_of[name] = variable.lengths.name
    return variable


class InputSpec:
    """Shape, type and name of an input."""

    def __init__(self, shape, dtype="float32", name=None):
        self.shape, self.dtype, self.name = tuple(-1 if d is None else d for d in shape), _dtype.convert(dtype), name

    def __repr__(self):
        return f"InputSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name})"


def append_backward(loss, parameter_list=None, no_grad_set=None, callbacks=None, checkpoints=None):
    """Adds the gradients of `loss`; returns [(parameter, gradient), ...]."""
    if callbacks:
        raise native.UnsupportedError("append_backward: callbacks are not here")
    if checkpoints:
        raise native.UnsupportedError("append_backward: checkpoints (recompute) belong to a strategy; nearest: "
                                      "fleet.DistributedStrategy().recompute")
    from paddle.optimizer import Optimizer
    return Optimizer(0.0).backward(loss, None, parameter_list, no_grad_set)


def gradients(targets, inputs, target_gradients=None, no_grad_set=None):
    """Gradients of `targets` for `inputs`; None where no target depends on one."""
    targets, inputs, seeds = as_list(targets), as_list(inputs), as_list(target_gradients)
    program = targets[0].program
    _graph.refuse_gradients(program, "gradients")
    if not seeds:
        from paddle.tensor import creation
        seeds = [creation.ones_like(t) for t in targets]
    stop = {v if isinstance(v, str) else v.name for v in (no_grad_set or ())}
    names = program.builder().gradients([t.name for t in targets], [i.name for i in inputs], [s.name for s in seeds],
                                        stop, *user_line())
    return [program._variable(n) if n else None for n in names]


def Print(input, first_n=-1, message=None, summarize=20, print_tensor_name=True, print_tensor_type=True,
          print_tensor_shape=True, print_tensor_layout=True, print_tensor_lod=True, print_phase="both"):
    """Passes input through and prints it whenever the program runs: message, name, type, shape and values. Gradients
    are not printed."""
    if print_phase not in ("forward", "both"):
        raise native.UnsupportedError(f"Print: print_phase={print_phase!r}: gradients are not printed; use 'forward'")
    return _graph.call("print", {"x": input},
                       {"message": message or "", "first_n": int(first_n), "summarize": int(summarize)})


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False


def name_scope(prefix=None):
    """Names of ops do not change: accepted for what it groups in pictures of the original."""
    return _Nothing()


def device_guard(device=None):
    """Layers under 'gpu:i' or 'cpu:i' are stage i of a pipeline (strategy.pipeline); 'cpu', 'gpu' and 'gpu:all' say nothing:
    there is one process for everything."""
    kind, colon, number = (device or "cpu").partition(":")
    if kind not in ("cpu", "gpu", "npu", "xpu") or (colon and number != "all" and not number.isdecimal()):
        raise native.InvalidArgumentError(
            f"paddle.static.device_guard: there is no device '{device}'; write 'cpu', 'gpu', or 'gpu:N' for stage N of a pipeline")
    return _graph.stage_guard(int(number) if number.isdecimal() else -1)


__getattr__ = _refuse.getter(__name__, {
    "ParallelExecutor": "CompiledProgram, and fleetrun for several workers", "py_func": "an op in C++: docs/add-an-op.md",
    "IpuStrategy": "nothing", "IpuCompiledProgram": "CompiledProgram",
    "xpu_places": "cuda_places", "npu_places": "cuda_places", "mlu_places": "cuda_places", "ipu_shard_guard": "nothing",
    "exponential_decay": "paddle.optimizer.lr.ExponentialDecay",
    "sparsity": "nothing", "quantization": "nothing"},
    lazy={"amp": "paddle.static.amp", **_refuse.moved("paddle.fluid.contrib.layers", "ctr_metric_bundle")})
