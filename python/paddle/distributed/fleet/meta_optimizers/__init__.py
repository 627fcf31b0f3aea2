"""Strategies rewrite programs in C++ here; of the original's classes for that, what scripts call beside them."""
from paddle import _refuse

__getattr__ = _refuse.getter(__name__, {}, lazy={"sharding": "paddle.distributed.fleet.meta_optimizers.sharding"})
