# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Parameter as Parameter

remove_weight_norm: Any
weight_norm: Any
def parameters_to_vector(parameters: Sequence[Parameter | str] | None, name: str | None = None) -> Any: ...
