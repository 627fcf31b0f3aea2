# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.distributed.fleet.utils.fs import ExecuteError as ExecuteError
from paddle.distributed.fleet.utils.fs import FSFileExistsError as FSFileExistsError
from paddle.distributed.fleet.utils.fs import FSFileNotExistsError as FSFileNotExistsError
from paddle.distributed.fleet.utils.fs import FSShellCmdAborted as FSShellCmdAborted
from paddle.distributed.fleet.utils.fs import FSTimeOut as FSTimeOut
from paddle.distributed.fleet.utils.fs import HDFSClient as HDFSClient
from paddle.distributed.fleet.utils.fs import LocalFS as LocalFS
