# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle._graph import Parameter as Parameter
from paddle._graph import Program as Program
from paddle._graph import Variable as Variable
from paddle.fluid._wrapping import GradientMergeOptimizer as GradientMergeOptimizer
from paddle.fluid._wrapping import PipelineOptimizer as PipelineOptimizer
from paddle.fluid._wrapping import RecomputeOptimizer as RecomputeOptimizer
from paddle.optimizer import Adadelta as _paddle_optimizer_Adadelta
from paddle.optimizer import Adagrad as _paddle_optimizer_Adagrad
from paddle.optimizer import Adam as _paddle_optimizer_Adam
from paddle.optimizer import Adamax as _paddle_optimizer_Adamax
from paddle.optimizer import Ftrl as _paddle_optimizer_Ftrl
from paddle.optimizer import Lamb as _paddle_optimizer_Lamb
from paddle.optimizer import LarsMomentum as _paddle_optimizer_LarsMomentum
from paddle.optimizer import Momentum as _paddle_optimizer_Momentum
from paddle.optimizer import Optimizer as Optimizer
from paddle.optimizer import Optimizer as _paddle_optimizer_Optimizer
from paddle.optimizer import RMSProp as _paddle_optimizer_RMSProp
from paddle.optimizer import SGD as _paddle_optimizer_SGD
from paddle.optimizer._averages import ExponentialMovingAverage as ExponentialMovingAverage
from paddle.optimizer._averages import Lookahead as Lookahead
from paddle.optimizer._averages import Lookahead as LookaheadOptimizer
from paddle.optimizer._averages import ModelAverage as ModelAverage

LearningRate = Any

class Adadelta(_Old, _paddle_optimizer_Adadelta):
    def __init__(self, learning_rate: float | LearningRate, epsilon: float = 1e-06, rho: float = 0.95, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
    kind: str


class Adagrad(_Old, _paddle_optimizer_Adagrad):
    def __init__(self, learning_rate: float | LearningRate, epsilon: float = 1e-06, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None, initial_accumulator_value: Any = 0.0) -> None: ...
    kind: str


class Adam(_Old, _paddle_optimizer_Adam):
    def __init__(self, learning_rate: float | LearningRate = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None, lazy_mode: Any = False, *, multi_precision: Any = False, use_multi_tensor: Any = False, amsgrad: Any = False) -> None: ...
    kind: str


class Adamax(_Old, _paddle_optimizer_Adamax):
    def __init__(self, learning_rate: float | LearningRate = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-08, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
    kind: str


class DGCMomentumOptimizer(Momentum):
    def __init__(self, learning_rate: float | LearningRate, momentum: float, rampup_begin_step: Any, rampup_step: Any = 1, sparsity: Any = ..., parameter_list: Sequence[Parameter | str] | None = None, use_nesterov: bool = False, num_trainers: Any = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
    @property
    def inner_opt(self) -> Any: ...
    def added_to(self, strategy: Any) -> Any: ...


class DecayedAdagrad(_Old, _paddle_optimizer_Optimizer):
    def __init__(self, learning_rate: float | LearningRate, decay: Any = 0.95, epsilon: float = 1e-06, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
    kind: str


class Ftrl(_Old, _paddle_optimizer_Ftrl):
    def __init__(self, learning_rate: float | LearningRate, l1: Any = 0.0, l2: Any = 0.0, lr_power: Any = -0.5, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
    kind: str


class Lamb(_Old, _paddle_optimizer_Lamb):
    def __init__(self, learning_rate: float | LearningRate = 0.001, lamb_weight_decay: Any = 0.01, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-06, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, exclude_from_weight_decay_fn: Any = None, name: str | None = None, *, multi_precision: Any = False) -> None: ...
    kind: str


class LarsMomentum(_Old, _paddle_optimizer_LarsMomentum):
    def __init__(self, learning_rate: float | LearningRate, momentum: float, lars_coeff: Any = 0.001, lars_weight_decay: Any = 0.0005, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None, exclude_from_weight_decay: Any = None, epsilon: float = 0.0, *, multi_precision: Any = False, rescale_grad: Any = 1.0) -> None: ...
    kind: str


class Momentum(_Old, _paddle_optimizer_Momentum):
    def __init__(self, learning_rate: float | LearningRate, momentum: float, parameter_list: Sequence[Parameter | str] | None = None, use_nesterov: bool = False, regularization: Any = None, grad_clip: Any = None, name: str | None = None, *, multi_precision: Any = False, use_multi_tensor: Any = False, rescale_grad: Any = 1.0) -> None: ...
    kind: str


class RMSProp(_Old, _paddle_optimizer_RMSProp):
    def __init__(self, learning_rate: float | LearningRate, rho: float = 0.95, epsilon: float = 1e-06, momentum: float = 0.0, centered: Any = False, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None) -> None: ...
    kind: str


class SGD(_Old, _paddle_optimizer_SGD):
    def __init__(self, learning_rate: float | LearningRate, parameter_list: Sequence[Parameter | str] | None = None, regularization: Any = None, grad_clip: Any = None, name: str | None = None, *, multi_precision: Any = False) -> None: ...
    kind: str


class _Old:
    def minimize(self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None, grad_clip: Any = None) -> Any: ...
    def backward(self, loss: Variable, startup_program: Program | None = None, parameter_list: Sequence[Parameter | str] | None = None, no_grad_set: Any = None, callbacks: Any = None) -> Any: ...
AdadeltaOptimizer = Adadelta
AdagradOptimizer = Adagrad
AdamOptimizer = Adam
AdamaxOptimizer = Adamax
DecayedAdagradOptimizer = DecayedAdagrad
FtrlOptimizer = Ftrl
LambOptimizer = Lamb
LarsMomentumOptimizer = LarsMomentum
MomentumOptimizer = Momentum
RMSPropOptimizer = RMSProp
SGDOptimizer = SGD
