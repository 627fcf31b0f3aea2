# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

def convert_float_to_uint16(in_list: Any, data_format: str | None = 'NCHW') -> Any: ...
def convert_uint16_to_float(in_list: Any) -> Any: ...
