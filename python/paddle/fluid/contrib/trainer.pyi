# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.utils import unique_name as unique_name

class BeginEpochEvent:
    epoch: Any
    def __init__(self, epoch_id: Any) -> None: ...


class BeginStepEvent:
    epoch: Any
    step: Any
    fetch_metrics: Any
    def __init__(self, epoch_id: Any, step_id: Any) -> None: ...


class EndEpochEvent(BeginEpochEvent):
    ...


class EndStepEvent:
    epoch: Any
    step: Any
    metrics: Any
    def __init__(self, epoch_id: Any, step_id: Any, metrics: Any) -> None: ...


class Inferencer(_Network):
    inference_program: Any
    predict_var: Any
    def __init__(self, infer_func: Any, param_path: Any, place: Any = None, parallel: Any = False) -> None: ...
    def infer(self, inputs: Any, return_numpy: bool = True) -> Any: ...


class Trainer(_Network):
    train_program: Any
    train_func_outputs: Any
    test_program: Any
    def __init__(self, train_func: Any, optimizer_func: Any, param_path: Any = None, place: Any = None, parallel: Any = False, checkpoint_config: Any = None) -> None: ...
    def stop(self) -> Any: ...
    def train(self, num_epochs: Any, event_handler: Any, reader: Callable[[], Iterable[Any]] | None = None, feed_order: Any = None) -> Any: ...
    def test(self, reader: Callable[[], Iterable[Any]], feed_order: Any) -> Any: ...
    def save_params(self, param_path: Any) -> Any: ...
    def save_inference_model(self, param_path: Any, feeded_var_names: Any, target_var_indexes: Any) -> Any: ...


class _Network:
    exe: Any
    scope: Any
    startup_program: Any
    def __init__(self, place: Any) -> None: ...
