# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.optimizer import AdamW as _paddle_optimizer_AdamW

LearningRate = Any

class _DecoupledAdam(_paddle_optimizer_AdamW):
    def __init__(self, weight_decay: Any, learning_rate: float | LearningRate = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, regularization: Any = None, apply_decay_param_fun: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any: ...
