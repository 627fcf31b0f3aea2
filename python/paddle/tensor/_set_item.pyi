# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._variable import Variable as Variable
from paddle.tensor import creation as creation
from paddle.tensor import manipulation as manipulation

def set_item(x: Variable, key: Any, value: Any) -> Variable: ...
