# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.distributed.fleet.optimizer import DistributedOptimizer as DistributedOptimizer
from paddle.distributed.fleet.optimizer import DistributedOptimizer as _paddle_distributed_fleet_optimizer_DistributedOptimizer
from paddle.distributed.fleet.strategy import DistributedStrategy as _paddle_distributed_fleet_strategy_DistributedStrategy

fleet: Any


class CollectiveOptimizer(_paddle_distributed_fleet_optimizer_DistributedOptimizer):
    def __init__(self, optimizer: Any, strategy: Any = None) -> None: ...


class DistributedStrategy(_paddle_distributed_fleet_strategy_DistributedStrategy):
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...


class _Collective:
    def init(self, role_maker: Any = None) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
