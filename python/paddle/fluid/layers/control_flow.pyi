# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import as_list as as_list
from paddle._variable import Variable as Variable
from paddle.fluid.layers.beams import While as While
from paddle.fluid.layers.beams import array_length as array_length
from paddle.fluid.layers.beams import array_read as array_read
from paddle.fluid.layers.beams import array_write as array_write
from paddle.fluid.layers.beams import create_array as create_array
from paddle.fluid.layers.beams import while_loop as while_loop
from paddle.fluid.layers.compare import equal as equal
from paddle.fluid.layers.compare import greater_equal as greater_equal
from paddle.fluid.layers.compare import greater_than as greater_than
from paddle.fluid.layers.compare import less_equal as less_equal
from paddle.fluid.layers.compare import less_than as less_than
from paddle.fluid.layers.compare import not_equal as not_equal
from paddle.fluid.layers.nn import increment as increment
from paddle.fluid.layers.static_rnn import DynamicRNN as DynamicRNN
from paddle.fluid.layers.static_rnn import StaticRNN as StaticRNN
from paddle.tensor import creation as creation
from paddle.tensor import logic as logic
from paddle.tensor import manipulation as manipulation

class Switch:
    def __init__(self, name: str | None = None) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> bool: ...
    def case(self, condition: Variable) -> Any: ...
    def default(self) -> Any: ...
def case(pred_fn_pairs: Any, default: Any = None, name: str | None = None) -> Variable: ...
def cond(pred: Variable, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Variable: ...
def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: str | None = None) -> Variable: ...
