"""Optimizers with the arguments of 1.x."""
from paddle import _refuse
from paddle import optimizer as _new
from paddle.optimizer import Optimizer, _declared  # noqa: F401


class _Old:
    """minimize with the argument names of 1.x."""

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        if grad_clip is not None:
            self._grad_clip = grad_clip
        return super().minimize(loss, startup_program, parameter_list, no_grad_set)

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        return super().backward(loss, startup_program, parameter_list, no_grad_set, callbacks)


# One class for each optimizer that is declared in fleetx/optimizers/ with a name in 1.x: Adam is AdamOptimizer.
for _definition in _declared.definitions():
    _name = _definition["fluid"]["name"]
    if _name:
        _bases = (_Old, getattr(_new, _definition["python"]["name"] or "Optimizer"))
        globals()[_name] = globals()[_name + "Optimizer"] = _declared.make_class(_definition, "fluid", __name__, _bases)

__getattr__ = _refuse.getter(__name__, {
    "RecomputeOptimizer": "fleet.DistributedStrategy().recompute", "PipelineOptimizer": "fleet.DistributedStrategy().pipeline",
    "DGCMomentumOptimizer": "fleet.DistributedStrategy().dgc", "GradientMergeOptimizer": "fleet.DistributedStrategy().gradient_merge",
    "Dpsgd": "SGD", "DpsgdOptimizer": "SGD", "ModelAverage": "nothing", "ExponentialMovingAverage": "nothing",
    "LookaheadOptimizer": "nothing"})
