# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle.fluid import layers as L
from paddle.nn import functional as F

class _Row:
    attrs: Any
    function: Any
    inputs: Any
    outputs: Any
    def __init__(self, function: Any, inputs: Any = 'X', attrs: Any = '', outputs: Any = 'Out') -> None: ...
    def call(self, op: Any, inputs: Any, attrs: Any) -> Any: ...
def append(block: Any, type: Any, inputs: Any, outputs: Any, attrs: Any) -> Any: ...
def names() -> Any: ...
