from paddle.distributed.fleet.utils.fs import HDFSClient  # noqa: F401
