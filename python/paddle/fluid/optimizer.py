"""Optimizers with the arguments of 1.x."""
from paddle import _refuse
from paddle import optimizer as _new
from paddle._native import native
from paddle.fluid._wrapping import GradientMergeOptimizer, PipelineOptimizer, RecomputeOptimizer  # noqa: F401
from paddle.optimizer import Optimizer, _declared  # noqa: F401
from paddle.optimizer._averages import ExponentialMovingAverage, Lookahead, ModelAverage  # noqa: F401

LookaheadOptimizer = Lookahead


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


class DGCMomentumOptimizer(globals()["MomentumOptimizer"]):
    """Momentum whose workers send only the largest gradients: strategy.dgc of docs/strategy.md. It acts where
    fleet.distributed_optimizer makes a program for several workers; a worker alone sends nothing.

    Arguments:
        rampup_begin_step: momentum with whole gradients until then
        rampup_step: steps over which sparsity goes through its list
        sparsity: shares of elements that are not sent, each in [0, 1)
        num_trainers: accepted, without effect: the job knows its workers
        the others: those of Momentum; grad_clip may be by the norm of single gradients
    """

    def __init__(self, learning_rate, momentum, rampup_begin_step, rampup_step=1, sparsity=(0.999,), parameter_list=None,
                 use_nesterov=False, num_trainers=None, regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, momentum, parameter_list=parameter_list, use_nesterov=use_nesterov,
                         regularization=regularization, grad_clip=grad_clip, name=name)
        if isinstance(sparsity, (int, float)):
            raise TypeError(f"DGCMomentumOptimizer: sparsity must be a list of numbers, not {sparsity!r}")
        self._dgc_configs = {"rampup_begin_step": int(rampup_begin_step), "rampup_step": int(rampup_step),
                             "sparsity": [float(s) for s in sparsity]}
        bad = [s for s in self._dgc_configs["sparsity"] if not 0 <= s < 1]
        if bad:
            raise ValueError(f"DGCMomentumOptimizer: sparsity has the value {bad[0]}; must be in [0, 1)")
        self.added_to(None)  # the other values are checked, too

    @property
    def inner_opt(self):
        return self

    def added_to(self, strategy):
        """The strategy of a job, with dgc as it is set here."""
        from paddle.distributed.fleet.strategy import DistributedStrategy
        if strategy is not None and strategy.dgc:
            if strategy.dgc_configs == self._dgc_configs:
                return strategy
            raise native.InvalidArgumentError(
                "dgc is asked for twice, with different settings: by DGCMomentumOptimizer and by strategy.dgc; leave one out")
        both = DistributedStrategy() if strategy is None else strategy.__deepcopy__({})
        both.dgc, both.dgc_configs = True, self._dgc_configs
        return both


__getattr__ = _refuse.getter(__name__, {
    "Dpsgd": "SGD", "DpsgdOptimizer": "SGD"})
