from paddle._graph import (Block, Operator, Parameter, Program, Variable, default_main_program,  # noqa: F401
                           default_startup_program, program_guard, switch_main_program, switch_startup_program)
from paddle._executor import cpu_places, cuda_places, is_compiled_with_cuda  # noqa: F401
from paddle.static import device_guard, name_scope  # noqa: F401
from paddle import in_dygraph_mode, set_flags, get_flags  # noqa: F401
from paddle.fluid import core  # noqa: F401
from paddle.utils import unique_name  # noqa: F401
from paddle._dtype import convert as convert_np_dtype_to_dtype_  # noqa: F401


def _get_var(name, program=None):
    return (program or default_main_program()).global_block().var(name)


class ParamBase:
    """A parameter of eager code: nothing is one here."""


def _dygraph_tracer():
    """Of eager code: there is none."""


def dygraph_only(function):
    return function


def grad_var_name(name):
    return name + "@GRAD"
