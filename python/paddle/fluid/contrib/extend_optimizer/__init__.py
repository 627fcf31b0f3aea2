"""Decay of weights that is no part of the gradient."""
from paddle import _refuse
from paddle import optimizer as _new
from paddle.fluid import optimizer as _old


def extend_with_decoupled_weight_decay(base_optimizer):
    """AdamW, of Adam; other optimizers are refused."""
    if base_optimizer not in (_old.Adam, _old.AdamOptimizer, _new.Adam):
        raise _refuse.refuse(f"extend_with_decoupled_weight_decay({base_optimizer.__name__})", "fluid.optimizer.Adam, which "
                             "becomes paddle.optimizer.AdamW")
    return _DecoupledAdam


class _DecoupledAdam(_new.AdamW):
    """The arguments of 1.x: weight_decay first, then those of Adam."""

    def __init__(self, weight_decay, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, regularization=None,
                 apply_decay_param_fun=None, grad_clip=None, name=None):
        if regularization is not None:
            raise TypeError("extend_with_decoupled_weight_decay: give weight_decay, not regularization")
        super().__init__(learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay,
                         apply_decay_param_fun=apply_decay_param_fun, grad_clip=grad_clip, name=name)
