# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.utils.profiler import cuda_profiler as cuda_profiler
from paddle.utils.profiler import profiler as profiler
from paddle.utils.profiler import reset_profiler as reset_profiler
from paddle.utils.profiler import start_profiler as start_profiler
from paddle.utils.profiler import stop_profiler as stop_profiler
