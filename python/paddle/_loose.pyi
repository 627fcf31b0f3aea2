# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle._lod_tensor import LoDTensor as LoDTensor

def follow(program: Program | None, feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> Any: ...
def joined(program: Program | None, feeds: Any) -> Any: ...
def loosen(program: Program | None) -> Any: ...
