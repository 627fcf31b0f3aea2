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


class ShowClickEntry(EntryAttr):
    def __init__(self, show_name: Any, click_name: Any, show_click_decay_rate: Any = 0.98, nonclk_coeff: Any = 0.1, click_coeff: Any = 1.0, delete_threshold: Any = 0.8, delete_after_unseen_days: Any = 30) -> None: ...
    def admission(self) -> Any: ...
