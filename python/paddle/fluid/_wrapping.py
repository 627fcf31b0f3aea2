"""Optimizers of 1.x around another one: strategies of docs/strategy.md without a DistributedStrategy."""
from paddle._native import native
from paddle._refuse import refuse
from paddle.distributed.fleet.optimizer import DistributedOptimizer
from paddle.distributed.fleet.strategy import DistributedStrategy


class _Wrapping(DistributedOptimizer):
    """minimize trains with one worker; fleet.distributed_optimizer takes it for several."""

    _alone = True
    _switch = None
    _optimizer = inner_optimizer = property(lambda self: self.inner_opt)  # as scripts of 1.x ask for it

    def __init__(self, optimizer, settings):
        self._settings = settings
        super().__init__(optimizer, self.added_to(None))

    def added_to(self, strategy):
        """The strategy of a job, with what is set here."""
        if strategy is not None and getattr(strategy, self._switch):
            raise native.InvalidArgumentError(f"{self._switch} is asked for twice: by {type(self).__name__} and by "
                                              f"strategy.{self._switch}; leave one out")
        both = DistributedStrategy() if strategy is None else strategy.__deepcopy__({})
        setattr(both, self._switch, True)
        setattr(both, self._switch + "_configs", self._settings)
        return both


class GradientMergeOptimizer(_Wrapping):
    """The gradients of `k_steps` batches are added up (`avg`: averaged) before `inner_optimizer` applies them."""

    _switch = "gradient_merge"

    def __init__(self, inner_optimizer, k_steps=1, avg=True):
        super().__init__(inner_optimizer, {"k_steps": k_steps, "avg": avg})


class PipelineOptimizer(_Wrapping):
    """Each batch is cut into `num_microbatches`, whose gradients are added up. With fleet.distributed_optimizer the layers under
    device_guard("gpu:N") are stage N, on a worker of its own."""

    _switch = "pipeline"

    def __init__(self, optimizer, num_microbatches=1, start_cpu_core_id=0, cut_list=None, place_list=None, concurrency_list=None,
                 queue_size=None, sync_steps=None):
        if isinstance(num_microbatches, list) or cut_list or place_list or concurrency_list or queue_size or sync_steps:
            raise refuse("PipelineOptimizer with the cut_list of 1.6", 'num_microbatches, and device_guard("gpu:N") around the '
                         "layers of stage N", "stages are made of layers, not of programs with queues between them")
        super().__init__(optimizer, {"accumulate_steps": num_microbatches})


class RecomputeOptimizer(_Wrapping):
    """Backward computes again what lies between the checkpoints. Without checkpoints the framework chooses them."""

    _switch = "recompute"

    def __init__(self, optimizer):
        super().__init__(optimizer, {"checkpoints": []})

    def _set_checkpoints(self, checkpoints):
        if not isinstance(checkpoints, (list, tuple)):
            raise TypeError("_set_checkpoints takes a list of variables or names, "
                            f"not {type(checkpoints).__name__}")
        self._settings = {"checkpoints": list(checkpoints)}
        self.user_defined_strategy.recompute_configs = self._settings
