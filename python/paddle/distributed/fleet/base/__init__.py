from paddle.distributed.fleet.base import role_maker  # noqa: F401
