# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.contrib.mixed_precision import decorator as decorator
from paddle.fluid.contrib.mixed_precision import fp16_lists as fp16_lists
from paddle.fluid.contrib.mixed_precision import fp16_utils as fp16_utils
from paddle.static.amp import CustomOpLists as AutoMixedPrecisionLists
from paddle.static.amp import CustomOpLists as CustomOpLists
from paddle.static.amp import OptimizerWithMixedPrecision as OptimizerWithMixedPrecision
from paddle.static.amp import bf16 as bf16
from paddle.static.amp import cast_model_to_fp16 as cast_model_to_fp16
from paddle.static.amp import cast_parameters_to_fp16 as cast_parameters_to_fp16
from paddle.static.amp import decorate as decorate
from paddle.static.amp import fp16_guard as fp16_guard
