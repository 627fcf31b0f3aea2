# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable

MARKS: Any
def ids_of(words: Any, size: int | Sequence[int]) -> Any: ...
def made_up(part: Any, count: Any) -> Any: ...
def made_up_words(letter: Any, size: int | Sequence[int]) -> Any: ...
def sample(source: Any, target: Variable, source_ids: Any, target_ids: Any) -> Any: ...
