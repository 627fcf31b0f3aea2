# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle.nn.clip import ClipGradByGlobalNorm as ClipGradByGlobalNorm
from paddle.nn.clip import ClipGradByGlobalNorm as GradientClipByGlobalNorm
from paddle.nn.clip import ClipGradByNorm as ClipGradByNorm
from paddle.nn.clip import ClipGradByNorm as GradientClipByNorm
from paddle.nn.clip import ClipGradByValue as ClipGradByValue
from paddle.nn.clip import ClipGradByValue as GradientClipByValue

ErrorClipByValue: Any
def set_gradient_clip(clip: Any, param_list: Any = None, program: Program | None = None) -> Any: ...
