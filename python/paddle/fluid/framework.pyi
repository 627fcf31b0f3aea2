# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import get_flags as get_flags
from paddle import in_dynamic_mode as in_dygraph_mode
from paddle import set_flags as set_flags
from paddle._block import Block as Block
from paddle._block import Operator as Operator
from paddle._dtype import convert as convert_np_dtype_to_dtype_
from paddle._graph import Program as Program
from paddle._graph import default_main_program as default_main_program
from paddle._graph import default_startup_program as default_startup_program
from paddle._graph import program_guard as program_guard
from paddle._graph import switch_main_program as switch_main_program
from paddle._graph import switch_startup_program as switch_startup_program
from paddle._places import cpu_places as cpu_places
from paddle._places import cuda_places as cuda_places
from paddle._places import is_compiled_with_cuda as is_compiled_with_cuda
from paddle._variable import Parameter as Parameter
from paddle._variable import Variable as Variable
from paddle.fluid import core as core
from paddle.static import device_guard as device_guard
from paddle.static import name_scope as name_scope
from paddle.utils import unique_name as unique_name

class ParamBase:
    ...
def dygraph_only(function: Any) -> Any: ...
def grad_var_name(name: str | None) -> Any: ...
