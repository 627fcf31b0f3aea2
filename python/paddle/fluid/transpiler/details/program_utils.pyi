# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

def op_to_code(op: Any, skip_op_callstack: Any = True) -> Any: ...
def program_to_code(prog: Any, fout: Any = None, skip_op_callstack: Any = True) -> Any: ...
def variable_to_code(var: Any) -> Any: ...
