# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._executor import CompiledProgram as CompiledProgram
from paddle._executor import Executor as Executor
from paddle._executor import global_scope as global_scope
from paddle._graph import Program as Program
from paddle._graph import Variable as Variable

class ParallelExecutor:
    def __init__(self, use_cuda: Any, loss_name: Any = None, main_program: Program | None = None, share_vars_from: Any = None, exec_strategy: Any = None, build_strategy: Any = None, num_trainers: Any = 1, trainer_id: Any = 0, scope: Any = None) -> None: ...
    @property
    def device_count(self) -> Any: ...
    def run(self, fetch_list: Sequence[Variable | str] | None, feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None, feed_dict: Any = None, return_numpy: bool = True) -> Any: ...
    def drop_local_exe_scopes(self) -> Any: ...
