# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._variable import Variable as Variable
from paddle.regularizer import WeightDecayRegularizer as WeightDecayRegularizer

COMMON: Any
COMMON_DOCS: Any
def definitions() -> Any: ...
def make_class(definition: Any, api: Any, module: Any, bases: Any) -> Any: ...
