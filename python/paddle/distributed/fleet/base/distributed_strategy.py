from paddle.distributed.fleet.strategy import DistributedStrategy  # noqa: F401
