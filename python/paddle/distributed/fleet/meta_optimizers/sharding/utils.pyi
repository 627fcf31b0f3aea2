# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program

def add_sync_comm(program: Program | None, sharding_ring_id: Any) -> Any: ...
def save_persistables(exe: Any, dirname: str | None, main_program: Program | None, filename: Any = None) -> None: ...
