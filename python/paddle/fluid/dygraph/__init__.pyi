# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import no_grad as no_grad
from paddle.distributed import ParallelEnv as Env
from paddle.distributed import ParallelEnv as ParallelEnv
from paddle.fluid.dygraph import base as base
from paddle.fluid.dygraph import parallel as parallel
from paddle.nn.layer.container import LayerList as LayerList
from paddle.nn.layer.container import ParameterList as ParameterList
from paddle.nn.layer.container import Sequential as Sequential
from paddle.nn.layer.layers import Layer as Layer

guard: Any
def enabled() -> Any: ...
in_dygraph_mode = enabled
