from paddle.distributed.fleet.utils.fs import (  # noqa: F401
    ExecuteError, FSFileExistsError, FSFileNotExistsError, FSShellCmdAborted, FSTimeOut, HDFSClient, LocalFS)
