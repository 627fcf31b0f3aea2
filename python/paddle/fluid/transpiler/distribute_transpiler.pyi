# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

class DistributeTranspilerConfig:
    slice_var_up: bool
    split_method: Any
    min_block_size: int
    enable_dc_asgd: bool
    mode: str
    print_log: bool
    wait_port: bool
    half_async: bool
    completely_not_async: bool
    geo_sgd_mode: bool
    geo_sgd_need_push_nums: int
    nccl_comm_num: int
    use_hierarchical_allreduce: bool
    hierarchical_allreduce_inter_nranks: int
    collective_mode: Any
    sync_mode: bool
    runtime_split_send_recv: bool
    def __setattr__(self, name: str, value: Any) -> None: ...
    def for_servers(self) -> Any: ...


class DistributedMode:
    SYNC: int
    ASYNC: int
    HALF_ASYNC: int
    GEO: int


class HashName:
    ...


class RoundRobin:
    ...
