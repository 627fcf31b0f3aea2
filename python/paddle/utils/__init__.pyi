# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.utils import cpp_extension as cpp_extension
from paddle.utils import download as download
from paddle.utils import profiler as profiler
from paddle.utils import unique_name as unique_name

def deprecated(update_to: Any = '', since: Any = '', reason: Any = '', level: Any = 0) -> Any: ...
def require_version(min_version: Any, max_version: Any = None) -> Any: ...
def run_check() -> Any: ...
def try_import(module_name: Any, err_msg: Any = None) -> Any: ...
