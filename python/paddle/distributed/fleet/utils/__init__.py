from paddle import _refuse
from paddle.distributed.fleet.utils.fs import HDFSClient, LocalFS  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"recompute": "DistributedStrategy().recompute"}, lazy={
    "ps_util": "paddle.distributed.fleet.utils.ps_util"})
