# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._refuse import refuse as refuse
from paddle.distributed.fleet.optimizer import DistributedOptimizer as DistributedOptimizer
from paddle.distributed.fleet.optimizer import DistributedOptimizer as _paddle_distributed_fleet_optimizer_DistributedOptimizer
from paddle.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy

class GradientMergeOptimizer(_Wrapping):
    def __init__(self, inner_optimizer: Any, k_steps: Any = 1, avg: Any = True) -> None: ...


class PipelineOptimizer(_Wrapping):
    def __init__(self, optimizer: Any, num_microbatches: Any = 1, start_cpu_core_id: Any = 0, cut_list: Any = None, place_list: Any = None, concurrency_list: Any = None, queue_size: Any = None, sync_steps: Any = None) -> None: ...


class RecomputeOptimizer(_Wrapping):
    def __init__(self, optimizer: Any) -> None: ...


class _Wrapping(_paddle_distributed_fleet_optimizer_DistributedOptimizer):
    @property
    def inner_optimizer(self) -> Any: ...
    def __init__(self, optimizer: Any, settings: Any) -> None: ...
    def added_to(self, strategy: Any) -> Any: ...
