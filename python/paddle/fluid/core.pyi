# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import FleetXError as EnforceNotMet
from paddle._executor import BuildStrategy as BuildStrategy
from paddle._executor import CPUPlace as CPUPlace
from paddle._executor import CUDAPinnedPlace as CUDAPinnedPlace
from paddle._executor import CUDAPlace as CUDAPlace
from paddle._executor import EOFException as EOFException
from paddle._executor import LoDTensor as LoDTensor
from paddle._executor import Scope as Scope

class VarDesc:
    VarType: Any
def get_cuda_device_count() -> Any: ...
def is_compiled_with_cuda() -> bool: ...
