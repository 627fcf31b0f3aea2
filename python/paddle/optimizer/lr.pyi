# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

LearningRate = Any

class CosineAnnealingDecay(LRScheduler):
    T_max: Any
    eta_min: Any
    def __init__(self, learning_rate: float | LearningRate, T_max: Any, eta_min: Any = 0, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class ExponentialDecay(_Gamma):
    def get_lr(self) -> float: ...


class InverseTimeDecay(_Gamma):
    def get_lr(self) -> float: ...


class LRScheduler:
    base_lr: Any
    last_lr: Any
    last_epoch: Any
    verbose: Any
    def __init__(self, learning_rate: float | LearningRate = 0.1, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def __call__(self) -> float: ...
    def get_lr(self) -> float: ...
    def step(self, epoch: int | None = None) -> None: ...
    def state_dict(self) -> Any: ...
    def set_state_dict(self, state_dict: Any) -> Any: ...
    def set_dict(self, state_dict: Any) -> Any: ...


class LambdaDecay(LRScheduler):
    lr_lambda: Any
    def __init__(self, learning_rate: float | LearningRate, lr_lambda: Any, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class LinearWarmup(LRScheduler):
    learning_rate: Any
    warmup_steps: Any
    start_lr: Any
    end_lr: Any
    def __init__(self, learning_rate: float | LearningRate, warmup_steps: Any, start_lr: Any, end_lr: Any, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...
    def state_dict(self) -> Any: ...
    def set_state_dict(self, state_dict: Any) -> Any: ...


class MultiStepDecay(LRScheduler):
    milestones: Any
    gamma: Any
    def __init__(self, learning_rate: float | LearningRate, milestones: Any, gamma: float = 0.1, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class MultiplicativeDecay(LambdaDecay):
    def get_lr(self) -> float: ...


class NaturalExpDecay(_Gamma):
    def get_lr(self) -> float: ...


class NoamDecay(LRScheduler):
    d_model: Any
    warmup_steps: Any
    def __init__(self, d_model: Any, warmup_steps: Any, learning_rate: float | LearningRate = 1.0, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class OneCycleLR(LRScheduler):
    max_lr: Any
    total: Any
    end_lr: Any
    up: Any
    anneal: Any
    def __init__(self, max_learning_rate: Any, total_steps: Any, divide_factor: Any = 25.0, end_learning_rate: Any = 0.0001, phase_pct: Any = 0.3, anneal_strategy: Any = 'cos', three_phase: Any = False, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class PiecewiseDecay(LRScheduler):
    boundaries: Any
    values: Any
    def __init__(self, boundaries: Any, values: Any, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class PolynomialDecay(LRScheduler):
    decay_steps: Any
    end_lr: Any
    power: Any
    cycle: Any
    def __init__(self, learning_rate: float | LearningRate, decay_steps: Any, end_lr: Any = 0.0001, power: Any = 1.0, cycle: Any = False, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class ReduceOnPlateau(LRScheduler):
    base_lr: Any
    last_lr: Any
    mode: Any
    factor: Any
    patience: Any
    threshold: Any
    threshold_mode: Any
    cooldown: Any
    min_lr: Any
    epsilon: Any
    cooldown_counter: Any
    best: Any
    num_bad_epochs: Any
    last_epoch: Any
    verbose: Any
    def __init__(self, learning_rate: float | LearningRate, mode: str | None = 'min', factor: Any = 0.1, patience: Any = 10, threshold: Any = 0.0001, threshold_mode: Any = 'rel', cooldown: Any = 0, min_lr: Any = 0, epsilon: float = 1e-08, verbose: Any = False) -> None: ...
    def step(self, metrics: Any, epoch: int | None = None) -> None: ...  # type: ignore[override]


class StepDecay(LRScheduler):
    step_size: Any
    gamma: Any
    def __init__(self, learning_rate: float | LearningRate, step_size: Any, gamma: float = 0.1, last_epoch: Any = -1, verbose: Any = False) -> None: ...
    def get_lr(self) -> float: ...


class _Gamma(LRScheduler):
    gamma: Any
    def __init__(self, learning_rate: float | LearningRate, gamma: float, last_epoch: Any = -1, verbose: Any = False) -> None: ...
