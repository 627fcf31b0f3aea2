# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Variable as Variable
from paddle.nn.functional import conv as conv
from paddle.static.nn import conv3d as conv3d

def adaptive_pool3d(input: Variable, pool_size: Any, pool_type: Any = 'max', require_index: Any = False, name: str | None = None) -> Variable: ...
def pool3d(input: Variable, pool_size: Any = -1, pool_type: Any = 'max', pool_stride: Any = 1, pool_padding: Any = 0, global_pooling: Any = False, use_cudnn: Any = True, ceil_mode: Any = False, name: str | None = None, exclusive: Any = True, data_format: str | None = 'NCDHW') -> Variable: ...
