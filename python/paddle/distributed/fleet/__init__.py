"""One program, many workers: init, distributed_optimizer, minimize; started by fleetrun."""
from paddle import _refuse
from paddle.distributed.fleet import base  # noqa: F401
from paddle.distributed.fleet import meta_parallel  # noqa: F401
from paddle.distributed.fleet.api import (UtilBase, _final_strategy, _get_applied_graph_list,  # noqa: F401
                                          _get_applied_meta_list, amp_init, barrier_worker, distributed_model,
                                          distributed_optimizer, get_hybrid_communicate_group, get_lr, init,
                                          init_server, init_worker, is_first_worker, is_server, is_worker, load_model,
                                          local_rank, minimize, node_num, run_server, save_cache_model, save_inference_model,
                                          save_persistables, server_endpoints, server_index, server_num, set_lr, shrink,
                                          split_files, stop_worker, util, worker_endpoints, worker_index, worker_num)
from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker, Role, UserDefinedRoleMaker  # noqa: F401
from paddle.distributed.fleet.data_generator import (DataGenerator, MultiSlotDataGenerator,  # noqa: F401
                                                     MultiSlotStringDataGenerator)
from paddle.distributed.fleet.dataset import DatasetBase, InMemoryDataset, QueueDataset  # noqa: F401
from paddle.distributed.fleet.strategy import DistributedStrategy  # noqa: F401
from paddle.distributed.fleet.topology import HybridCommunicateGroup  # noqa: F401
from paddle.distributed.fleet import api as _api

_PROGRAMS = {"main_program": _api.main_program, "startup_program": _api.startup_program}
_refused = _refuse.getter(__name__, {
    "CommunicateTopology": "get_hybrid_communicate_group",
    "distributed_scaler": "DistributedStrategy().amp",
    "Fleet": "the functions of this module"},
    lazy={"metrics": "paddle.distributed.fleet.metrics", "utils": "paddle.distributed.fleet.utils",
          "launch": "paddle.distributed.fleet.launch"})


def __getattr__(name):
    if name == "fleet":  # from paddle.distributed.fleet import fleet
        import sys
        return sys.modules[__name__]
    return _PROGRAMS[name]() if name in _PROGRAMS else _refused(name)
