# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.utils.cpp_extension import BuildExtension as BuildExtension

CUDAExtension: Any
CUDA_HOME: Any
CppExtension: Any
load: Any
setup: Any
