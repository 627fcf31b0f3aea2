# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.distributed.fleet.base.role_maker import MPISymetricRoleMaker as MPISymetricRoleMaker
from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as distributed_strategy
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import DistributedStrategy as DistributedStrategy
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import StrategyFactory as StrategyFactory
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig

fleet: Any


class _Servers:
    def init(self, role_maker: Any = None) -> Any: ...
    def distributed_optimizer(self, optimizer: Any, strategy: Any = None) -> Any: ...
    def init_server(self, model_dir: Any = None, **kwargs: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
