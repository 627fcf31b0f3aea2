# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle._graph import Variable as Variable
from paddle.distributed.fleet import api as api

class DistributedInfer:
    def __init__(self, main_program: Program | None = None, startup_program: Program | None = None) -> None: ...
    def init_distributed_infer_env(self, exe: Any, loss: Variable | None = None, role_maker: Any = None, dirname: str | None = None) -> Any: ...
    def get_dist_infer_program(self) -> Any: ...
