# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

class Profiler:
    step_num: Any
    current_state: Any
    def __init__(self, *, targets: Any = None, scheduler: Any = None, on_trace_ready: Any = None, record_shapes: Any = False, profile_memory: Any = False, timer_only: Any = False, emit_nvtx: Any = False, custom_device_types: Any = None, with_flops: Any = False) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> bool: ...
    def start(self) -> Any: ...
    def stop(self) -> Any: ...
    def step(self, num_samples: Any = None) -> Any: ...
    def step_info(self, unit: Any = None) -> Any: ...
    def export(self, path: str | None = '', format: Any = 'json') -> Any: ...
    def summary(self, sorted_by: Any = None, op_detail: Any = True, thread_sep: Any = False, time_unit: Any = 'ms', views: Any = None) -> Any: ...


class ProfilerState:
    CLOSED: Any
    READY: Any
    RECORD: Any
    RECORD_AND_RETURN: Any


class ProfilerTarget:
    CPU: Any
    GPU: Any
    MLU: Any
    XPU: Any
    CUSTOM_DEVICE: Any


class RecordEvent:
    name: str
    event_type: Any
    def __init__(self, name: str | None, event_type: Any = None) -> None: ...
    def begin(self) -> Any: ...
    def end(self) -> Any: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: Any) -> bool: ...


class SortedKeys:
    CPUTotal: Any
    CPUAvg: Any
    CPUMax: Any
    CPUMin: Any
    GPUTotal: Any
    GPUAvg: Any
    GPUMax: Any
    GPUMin: Any
def export_chrome_tracing(dir_name: Any, worker_name: Any = None) -> Any: ...
def make_scheduler(*, closed: Any, ready: Any, record: Any, repeat: Any = 0, skip_first: Any = 0) -> Any: ...
