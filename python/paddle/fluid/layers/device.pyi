# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle._places import cpu_places as cpu_places

def get_places(device_count: Any = None, device_type: Any = None) -> Variable: ...
