# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program

class InferenceTranspiler:
    def transpile(self, program: Program | None, place: Any, scope: Any = None) -> Any: ...
