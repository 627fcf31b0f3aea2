# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle.io import as_batch as as_batch

class DataFeeder:
    feed_list: Any
    place: Any
    def __init__(self, feed_list: Any, place: Any = None, program: Program | None = None) -> None: ...
    def feed(self, iterable: bool) -> dict[str, Any]: ...
    def feed_parallel(self, iterable: bool, num_places: Any = None) -> Any: ...
    def decorate_reader(self, reader: Callable[[], Iterable[Any]], multi_devices: Any = False, num_places: Any = None, drop_last: bool = True) -> Any: ...
