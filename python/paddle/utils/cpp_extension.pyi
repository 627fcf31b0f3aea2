# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

BuildExtension: Any
CUDAExtension: Any
CppExtension: Any
get_build_directory: Any
load: Any
setup: Any
