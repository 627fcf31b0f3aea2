# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle.fluid.transpiler.details.program_utils import program_to_code as program_to_code

def draw_block_graphviz(block: Any, highlights: Any = None, path: str | None = './temp.dot') -> Any: ...
def pprint_block_codes(block: Any) -> Any: ...
def pprint_program_codes(program: Program | None) -> Any: ...
