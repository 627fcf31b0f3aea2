# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

def not_to_static(func: Any = None) -> Any: ...
def to_static(function: Any = None, input_spec: Any = None, build_strategy: Any = None, property: Any = False) -> Any: ...
