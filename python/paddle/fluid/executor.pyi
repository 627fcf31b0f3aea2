# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._executor import Executor as Executor
from paddle._executor import FetchHandler as FetchHandler
from paddle._executor import global_scope as global_scope
from paddle._executor import scope_guard as scope_guard
