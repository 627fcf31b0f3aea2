"""Names of paddle.framework: places, parameters, random seeds, files."""
from paddle import _refuse
from paddle import get_default_dtype, in_dynamic_mode, set_default_dtype, seed  # noqa: F401
from paddle import ParamAttr, Variable, no_grad  # noqa: F401
from paddle._executor import CPUPlace, CUDAPinnedPlace, CUDAPlace  # noqa: F401
from paddle._graph import Block, Operator, Parameter, Program  # noqa: F401
from paddle._graph import default_main_program, default_startup_program, program_guard  # noqa: F401
from paddle.files import load, save  # noqa: F401
from paddle.fluid import core  # noqa: F401
from paddle.static import name_scope  # noqa: F401
from paddle.tensor.creation import create_parameter  # noqa: F401

__path__ = []  # importing one of its modules asks paddle._missing_modules

in_dygraph_mode = in_dynamic_mode
_DYGRAPH = "static programs: paddle.enable_static(), Executor.run"
__getattr__ = _refuse.getter(__name__, {"VarBase": _DYGRAPH, "grad": "paddle.static.gradients", "DataParallel": _DYGRAPH,
                                        "get_cuda_rng_state": "paddle.seed", "set_cuda_rng_state": "paddle.seed"},
                             lazy={"random": "paddle.tensor.random"})
