"""Collective training with the names of 1.x."""
from paddle.distributed import fleet as _new
from paddle.distributed.fleet.optimizer import DistributedOptimizer as CollectiveOptimizer  # noqa: F401
from paddle.distributed.fleet.strategy import DistributedStrategy  # noqa: F401


class _Collective:
    """The functions of paddle.distributed.fleet; init is collective."""

    def init(self, role_maker=None):
        _new.init(role_maker, is_collective=True)

    def __getattr__(self, name):
        return getattr(_new, name)


fleet = _Collective()
