# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle._graph import Variable as Variable
from paddle._graph import emit as emit
from paddle._param import ParamAttr as ParamAttr
from paddle.nn.initializer import Initializer as Initializer
from paddle.utils import unique_name as unique_name

class _Rows:
    rows: Any
    lengths: Any
    starts: Any
    def __init__(self, what: Any, input: Variable, length: Any, width: Any = None) -> None: ...
    def places(self) -> Any: ...
    def column(self, values: Any) -> Any: ...
def chunk_eval(input: Variable, label: Variable, chunk_scheme: Any, num_chunk_types: Any, excluded_chunk_types: Any = None, seq_length: Any = None) -> tuple[Variable, ...]: ...
def crf_decoding(input: Variable, param_attr: ParamAttr | Initializer | str | bool | None, label: Variable | None = None, length: Any = None) -> Variable: ...
def linear_chain_crf(input: Variable, label: Variable, param_attr: ParamAttr | Initializer | str | bool | None = None, length: Any = None) -> Variable: ...
