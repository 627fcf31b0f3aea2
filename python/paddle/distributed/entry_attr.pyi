# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

class CountFilterEntry(EntryAttr):
    def __init__(self, count_filter: Any) -> None: ...
    def admission(self) -> Any: ...


class EntryAttr:
    def admission(self) -> Any: ...


class ProbabilityEntry(EntryAttr):
    def __init__(self, probability: Any) -> None: ...
    def admission(self) -> Any: ...
