# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.static.amp import cast_model_to_fp16 as cast_model_to_fp16
from paddle.static.amp import cast_parameters_to_fp16 as cast_parameters_to_fp16
from paddle.static.amp import fp16_guard as fp16_guard
