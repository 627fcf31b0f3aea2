# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import layer_call as layer_call
from paddle._param import ParamAttr as ParamAttr
from paddle._refuse import refuse as refuse
from paddle._variable import Variable as Variable
from paddle.distributed.fleet import api as api
from paddle.nn.initializer import Initializer as Initializer
from paddle.utils import unique_name as unique_name

class ColumnParallelLinear(_Divided):
    def __init__(self, in_features: Any, out_features: Any, weight_attr: ParamAttr | Initializer | str | bool | None = None, has_bias: Any = None, gather_output: Any = True, fuse_matmul_bias: Any = False, mp_group: Any = None, name: str | None = None) -> None: ...
    def __call__(self, x: Variable) -> Any: ...


class ParallelCrossEntropy:
    def __init__(self, mp_group: Any = None, name: str | None = None, ignore_index: Any = -100) -> None: ...
    def __call__(self, input: Variable, label: Variable) -> Any: ...


class RowParallelLinear(_Divided):
    def __init__(self, in_features: Any, out_features: Any, weight_attr: ParamAttr | Initializer | str | bool | None = None, has_bias: Any = True, input_is_parallel: Any = False, fuse_matmul_bias: Any = False, mp_group: Any = None, name: str | None = None) -> None: ...
    def __call__(self, x: Variable) -> Any: ...


class VocabParallelEmbedding(_Divided):
    def __init__(self, num_embeddings: Any, embedding_dim: Any, weight_attr: ParamAttr | Initializer | str | bool | None = None, mp_group: Any = None, name: str | None = None) -> None: ...
    def __call__(self, ids: Variable) -> Any: ...


class _Divided:
    def __init__(self, name: str | None, kind: Any, mp_group: Any) -> None: ...
