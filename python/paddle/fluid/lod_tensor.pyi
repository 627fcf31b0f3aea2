# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._lod_tensor import LoDTensor as LoDTensor

def create_lod_tensor(data: Any, recursive_seq_lens: Any, place: Any = None) -> Any: ...
def create_random_int_lodtensor(recursive_seq_lens: Any, base_shape: Any, place: Any = None, low: Any = 0, high: Any = 1) -> Any: ...
