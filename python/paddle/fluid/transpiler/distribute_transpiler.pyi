# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

class DistributeTranspilerConfig:
    slice_var_up: Any
    split_method: Any
    min_block_size: Any
    enable_dc_asgd: Any
    mode: Any
    print_log: Any
    wait_port: Any
    half_async: Any
    completely_not_async: Any
    geo_sgd_mode: Any
    geo_sgd_need_push_nums: Any
    nccl_comm_num: Any
    use_hierarchical_allreduce: Any
    hierarchical_allreduce_inter_nranks: Any
    collective_mode: Any
    sync_mode: Any
    runtime_split_send_recv: Any
