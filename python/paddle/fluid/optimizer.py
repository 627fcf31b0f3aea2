"""Optimizers with the arguments of 1.x."""
from paddle import _refuse
from paddle import optimizer as _new
from paddle.optimizer import Optimizer  # noqa: F401


class _Old:
    """minimize with the argument names of 1.x."""

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        if grad_clip is not None:
            self._grad_clip = grad_clip
        return super().minimize(loss, startup_program, parameter_list, no_grad_set)

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        return super().backward(loss, startup_program, parameter_list, no_grad_set, callbacks)


class SGD(_Old, _new.SGD):
    def __init__(self, learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)


class Momentum(_Old, _new.Momentum):
    def __init__(self, learning_rate, momentum, parameter_list=None, use_nesterov=False, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, momentum, parameter_list, use_nesterov, regularization, grad_clip, name)


class Adam(_Old, _new.Adam):
    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, lazy_mode=False):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, lazy_mode,
                         name)


class Adamax(_Old, _new.Adamax):
    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameter_list, regularization, grad_clip, name)


class Adagrad(_Old, _new.Adagrad):
    def __init__(self, learning_rate, epsilon=1e-6, parameter_list=None, regularization=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        super().__init__(learning_rate, epsilon, parameter_list, regularization, grad_clip, name,
                         initial_accumulator_value)


class RMSProp(_Old, _new.RMSProp):
    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, rho, epsilon, momentum, centered, parameter_list, regularization, grad_clip,
                         name)


class Adadelta(_Old, _new.Adadelta):
    def __init__(self, learning_rate, epsilon=1e-6, rho=0.95, parameter_list=None, regularization=None, grad_clip=None,
                 name=None):
        super().__init__(learning_rate, epsilon, rho, parameter_list, regularization, grad_clip, name)


class Ftrl(_Old, _new.Ftrl):
    def __init__(self, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameter_list=None, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, l1, l2, lr_power, parameter_list, regularization, grad_clip, name)


class LarsMomentum(_Old, _new.LarsMomentum):
    def __init__(self, learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, exclude_from_weight_decay=None, epsilon=0.0):
        super().__init__(learning_rate, momentum, lars_coeff, lars_weight_decay, parameter_list, regularization,
                         grad_clip, name, exclude_from_weight_decay, epsilon)


class Lamb(_Old, _new.Lamb):
    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
                 parameter_list=None, regularization=None, grad_clip=None, exclude_from_weight_decay_fn=None, name=None):
        super().__init__(learning_rate, lamb_weight_decay, beta1, beta2, epsilon, parameter_list, grad_clip,
                         exclude_from_weight_decay_fn, name)
        self.regularization = regularization


SGDOptimizer, MomentumOptimizer, AdamOptimizer, AdagradOptimizer = SGD, Momentum, Adam, Adagrad
RMSPropOptimizer, AdadeltaOptimizer, FtrlOptimizer = RMSProp, Adadelta, Ftrl
LarsMomentumOptimizer, LambOptimizer, AdamaxOptimizer = LarsMomentum, Lamb, Adamax

__getattr__ = _refuse.getter(__name__, {
    "RecomputeOptimizer": "fleet.DistributedStrategy().recompute", "PipelineOptimizer": "fleet.DistributedStrategy().pipeline",
    "DGCMomentumOptimizer": "fleet.DistributedStrategy().dgc", "GradientMergeOptimizer": "fleet.DistributedStrategy().gradient_merge",
    "DecayedAdagrad": "Adagrad", "DecayedAdagradOptimizer": "Adagrad",
    "Dpsgd": "SGD", "DpsgdOptimizer": "SGD", "ModelAverage": "nothing", "ExponentialMovingAverage": "nothing",
    "LookaheadOptimizer": "nothing"})
