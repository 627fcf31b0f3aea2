# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import static as static
from paddle._graph import Variable as Variable
from paddle.fluid.layers import data as data
from paddle.io import GeneratorLoader as GeneratorLoader
from paddle.io import GeneratorLoader as _paddle_io_GeneratorLoader
from paddle.utils import unique_name as unique_name

class PyReader(_paddle_io_GeneratorLoader):
    name: str
    def __init__(self, feed_list: Any, capacity: int, name: str | None, use_double_buffer: Any = True) -> None: ...
    @property
    def variables(self) -> Any: ...
def create_py_reader_by_data(capacity: int, feed_list: Any, name: str | None = None, use_double_buffer: Any = True) -> Variable: ...
def double_buffer(reader: Callable[[], Iterable[Any]], place: Any = None, name: str | None = None) -> Variable: ...
def py_reader(capacity: int, shapes: Any, dtypes: Any, lod_levels: Any = None, name: str | None = None, use_double_buffer: Any = True) -> Variable: ...
def read_file(reader: Callable[[], Iterable[Any]]) -> Variable: ...
