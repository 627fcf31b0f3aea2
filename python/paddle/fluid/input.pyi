# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle.static.nn import embedding as embedding
from paddle.tensor import manipulation as manipulation

def one_hot(input: Variable, depth: int, allow_out_of_range: Any = False) -> Any: ...
