# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

class ClipGradByGlobalNorm:
    clip_norm: Any
    def __init__(self, clip_norm: Any, group_name: Any = 'default_group', auto_skip_clip: Any = False) -> None: ...
    def options(self) -> Any: ...


class ClipGradByNorm:
    clip_norm: Any
    def __init__(self, clip_norm: Any) -> None: ...
    def options(self) -> Any: ...


class ClipGradByValue:
    max: Any
    min: Any
    def __init__(self, max: Any, min: Any = None) -> None: ...
    def options(self) -> Any: ...
