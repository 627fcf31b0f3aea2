# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._executor import global_scope as global_scope
from paddle._graph import Program as Program
from paddle._graph import as_list as as_list

def export(program: Program | None, path: str | None, input_spec: Any = None, opset_version: Any = 13, output_spec: Any = None) -> Any: ...
