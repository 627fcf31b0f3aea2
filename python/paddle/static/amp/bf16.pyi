# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Program as Program
from paddle.static.amp import CustomOpLists as CustomOpLists
from paddle.static.amp import CustomOpLists as _paddle_static_amp_CustomOpLists
from paddle.static.amp import cast_model_to_fp16 as cast_model_to_fp16
from paddle.static.amp import cast_parameters_to_fp16 as cast_parameters_to_fp16
from paddle.static.amp import decorate as decorate
from paddle.static.amp import fp16_guard as bf16_guard

class AutoMixedPrecisionListsBF16(_paddle_static_amp_CustomOpLists):
    def __init__(self, custom_bf16_list: Any = None, custom_fp32_list: Any = None, custom_fp32_varnames: Any = None) -> None: ...
def cast_model_to_bf16(program: Program | None, amp_lists: Any = None, use_bf16_guard: Any = True) -> Any: ...
def cast_parameters_to_bf16(place: Any, program: Program | None, scope: Any = None, to_bf16_var_names: Any = None) -> Any: ...
def decorate_bf16(optimizer: Any, amp_lists: Any = None, use_pure_bf16: Any = False, use_bf16_guard: Any = None) -> Any: ...
