# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

commit: Any
full_version: Any
istaged: Any
major: Any
minor: Any
patch: Any
rc: Any
with_mkl: Any
def cuda() -> Any: ...
def mkl() -> Any: ...
def show() -> Any: ...
cudnn = cuda
