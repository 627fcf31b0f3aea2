from paddle.distributed.fleet.meta_optimizers.sharding import utils  # noqa: F401
