# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import in_dynamic_mode as in_dygraph_mode
from paddle import in_dynamic_mode as in_dynamic_mode
from paddle import no_grad as no_grad
from paddle import seed as seed
from paddle._block import Block as Block
from paddle._block import Operator as Operator
from paddle._dtype import get_default_dtype as get_default_dtype
from paddle._dtype import set_default_dtype as set_default_dtype
from paddle._graph import Program as Program
from paddle._graph import default_main_program as default_main_program
from paddle._graph import default_startup_program as default_startup_program
from paddle._graph import program_guard as program_guard
from paddle._param import ParamAttr as ParamAttr
from paddle._places import CPUPlace as CPUPlace
from paddle._places import CUDAPinnedPlace as CUDAPinnedPlace
from paddle._places import CUDAPlace as CUDAPlace
from paddle._variable import Parameter as Parameter
from paddle._variable import Variable as Variable
from paddle.files import load as load
from paddle.files import save as save
from paddle.fluid import core as core
from paddle.static import name_scope as name_scope
from paddle.tensor import random as random
from paddle.tensor.creation import create_parameter as create_parameter
