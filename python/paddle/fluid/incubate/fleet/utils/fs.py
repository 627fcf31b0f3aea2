from paddle.distributed.fleet.utils.fs import HDFSClient, LocalFS  # noqa: F401
