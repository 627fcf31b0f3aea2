# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import FleetXError as EnforceNotMet
from paddle import is_compiled_with_xpu as is_compiled_with_xpu
from paddle._executor import BuildStrategy as BuildStrategy
from paddle._executor import EOFException as EOFException
from paddle._executor import Scope as Scope
from paddle._lod_tensor import LoDTensor as LoDTensor
from paddle._lod_tensor import LoDTensorArray as LoDTensorArray
from paddle._places import CPUPlace as CPUPlace
from paddle._places import CUDAPinnedPlace as CUDAPinnedPlace
from paddle._places import CUDAPlace as CUDAPlace
from paddle._places import cuda_device_count as get_cuda_device_count
from paddle._places import is_compiled_with_cuda as is_compiled_with_cuda

class VarDesc:
    VarType: Any
def globals() -> Any: ...
