# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._executor import Executor as Executor
from paddle._graph import Program as Program
from paddle._graph import Program as _paddle__graph_Program
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig

class DistributeTranspiler:
    config: Any
    def __init__(self, config: Any = None) -> None: ...
    def transpile(self, trainer_id: Any, program: Program | None = None, pservers: Any = '127.0.0.1:6174', trainers: Any = 1, sync_mode: Any = True, startup_program: Program | None = None, current_endpoint: Any = '127.0.0.1:6174') -> Any: ...
    def get_trainer_program(self, wait_port: Any = True) -> Any: ...
    def get_pserver_program(self, endpoint: Any) -> Any: ...
    def get_pserver_programs(self, endpoint: Any) -> Any: ...
    def get_startup_program(self, endpoint: Any, pserver_program: Any = None, startup_program: Program | None = None) -> Any: ...


class ServerProgram(_paddle__graph_Program):
    def serve(self) -> Any: ...
