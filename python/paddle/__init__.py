"""The calls of PaddlePaddle's static programs, served by FleetX on the CPU. See docs/python.md for what differs."""
import contextlib

from paddle import _guard

_guard.check()

from paddle import _dtype, _flags, _graph, _missing_modules, _refuse  # noqa: E402
from paddle._batch import batch  # noqa: E402
from paddle._dtype import (bfloat16, bool_, dtype, float16, float32, float64, get_default_dtype, int32, int64,  # noqa: E402
                           set_default_dtype, uint8)
from paddle._executor import (CPUPlace, CUDAPinnedPlace, CUDAPlace, XPUPlace, is_compiled_with_cuda)  # noqa: E402
from paddle._graph import (Program, Variable, default_main_program, default_startup_program,  # noqa: E402
                           program_guard)
from paddle._native import native as _native  # noqa: E402
from paddle._param import ParamAttr  # noqa: E402
from paddle import tensor  # noqa: E402
from paddle import metric, nn, optimizer, reader, regularizer, static, utils, vision  # noqa: E402
from paddle import io  # noqa: E402
from paddle import onnx  # noqa: E402
from paddle.files import load, save  # noqa: E402
from paddle.static import Executor, global_scope, scope_guard  # noqa: E402

__version__ = "2.1.0"
FleetXError = _native.FleetXError
InvalidArgumentError = _native.InvalidArgumentError
UnsupportedError = _native.UnsupportedError
bool = bool_  # noqa: A001


class Tensor:
    """A tensor with a value, of eager code. Programs are static here: there is none, and a variable of a program is not
    one, as in the original."""

    def __init__(self, *args, **kwargs):
        raise _refuse.refuse("paddle.Tensor(...)", "paddle.to_tensor, a constant of a program")


_FUNCTIONS = """abs add add_n addmm all allclose any arange argmax argmin argsort assign bernoulli bmm broadcast_to cast
    ceil chunk clip clone concat cos cosh create_parameter cumsum dist divide dot empty empty_like equal equal_all exp
    expand expand_as expm1 eye flatten flip floor floor_divide floor_mod full full_like gather gather_nd gaussian
    greater_equal greater_than increment index_select is_empty is_tensor isclose isfinite isinf isnan less_equal
    less_than linspace log log10 log1p log2 logical_and logical_not logical_or logical_xor logsumexp masked_fill matmul
    max maximum mean min minimum mm mod multinomial multiplex multiply mv neg norm normal not_equal numel ones ones_like pow prod
    rand randint randn randperm rank reciprocal remainder reshape reverse roll round rsqrt scale scatter shape sign sin sinh
    slice sort split sqrt square squeeze stack standard_normal stanh std strided_slice subtract sum t tan tanh tile
    to_tensor topk transpose tril triu unbind uniform unsqueeze unstack var where zeros zeros_like
    acos asin atan crop cross diag diagonal einsum erf fmax fmin index_sample kron lerp meshgrid moveaxis
    masked_select nonzero repeat_interleave scatter_nd scatter_nd_add shard_index take_along_axis tensordot trace trunc unique""".split()
for _name in _FUNCTIONS:
    globals()[_name] = getattr(tensor, _name)
del _name

_static = False


def enable_static():
    """Programs are always static here."""
    global _static
    _static = True


def disable_static(place=None):
    raise _native.UnsupportedError(
        "paddle.disable_static(): FleetX runs static programs only; build the network once and use Executor.run")


def in_dynamic_mode():
    return False


in_dygraph_mode = in_dynamic_mode


def is_grad_enabled():
    return True


class no_grad(contextlib.ContextDecorator):
    """Of eager code in the original. What a static program differentiates is said by stop_gradient."""

    def __new__(cls, func=None):
        return super().__new__(cls) if func is None else func  # @no_grad without brackets

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def seed(value):
    """Of all random values in programs made from now on, and in the default ones."""
    _graph.set_seed(value)
    return value


def set_device(device):
    return CPUPlace() if str(device).startswith("cpu") else CUDAPlace(int(str(device).partition(":")[2] or 0))


def get_device():
    return "cpu"


def is_compiled_with_xpu():
    return False


is_compiled_with_rocm = is_compiled_with_npu = is_compiled_with_distribute = is_compiled_with_xpu
is_compiled_with_cinn = is_compiled_with_ipu = is_compiled_with_xpu


def is_compiled_with_custom_device(device_type):
    return False


def set_flags(flags):
    """Flags of the original steer devices and allocators that are not here; they are kept."""
    _flags.flags.update(flags)


def get_flags(flags):
    return {name: _flags.flags[name] for name in _graph.as_list(flags)}


def set_printoptions(precision=None, threshold=None, edgeitems=None, sci_mode=None, linewidth=None):
    import numpy
    numpy.set_printoptions(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth,
                           suppress=None if sci_mode is None else not sci_mode)


_missing_modules.install()

_DYNAMIC = "static programs: paddle.enable_static(), Executor.run"
__getattr__ = _refuse.getter(__name__, {
    "DataParallel": "fleet.distributed_optimizer in a static program", "grad": "paddle.static.gradients",
    "Model": "a loop over Executor.run, or fleetx.MultiGPUTrainer",
    "summary": "print(program)", "flops": "Executor.plan", "hapi": "a loop over Executor.run",
    "amp": "paddle.static.amp.decorate", "callbacks": "nothing",
    "distribution": "paddle.uniform, paddle.normal", "text": "paddle.dataset", "sysconfig": "cmake --install",
    "cholesky": "nothing", "inverse": "nothing", "bincount": "paddle.one_hot and sum", "histogram": "paddle.one_hot and sum",
    "cumprod": "paddle.cumsum of logarithms",
    "median": "paddle.sort",
    "complex": "nothing", "real": "nothing", "imag": "nothing", "conj": "nothing",
    "int8": "int32", "int16": "int32", "complex64": "float32", "complex128": "float64",
    "get_cuda_rng_state": "paddle.seed", "set_cuda_rng_state": "paddle.seed", "CUDAGraph": "nothing",
}, lazy={"fluid": "paddle.fluid", "fleet": "paddle.distributed.fleet", "dataset": "paddle.dataset", "distributed": "paddle.distributed",
         "common_ops_import": "paddle.common_ops_import", "device": "paddle.device", "compat": "paddle.compat",
         "framework": "paddle.framework", "inference": "paddle.inference", "profiler": "paddle.profiler", "incubate": "paddle.incubate",
         "version": "paddle.version", "jit": "paddle.jit"})
