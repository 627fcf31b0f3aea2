# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

bfloat16: Any
bool_: Any
float16: Any
float32: Any
float64: Any
int32: Any
int64: Any
uint8: Any
def constant(values: Any, of: Any) -> Any: ...
def convert(value: Any) -> Any: ...


class dtype:
    ...
def get_default_dtype() -> Any: ...
def is_float(value: Any) -> Any: ...
def set_default_dtype(value: Any) -> Any: ...
