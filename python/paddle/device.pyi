# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import get_device as get_device
from paddle import is_compiled_with_xpu as is_compiled_with_xpu
from paddle import set_device as set_device
from paddle._places import cuda_device_count as cuda_device_count
from paddle._places import is_compiled_with_cuda as is_compiled_with_cuda

def get_cudnn_version() -> Any: ...
