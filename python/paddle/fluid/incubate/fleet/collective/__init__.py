"""Collective training with the names of 1.x."""
import warnings

from paddle import _refuse
from paddle.distributed import fleet as _new
from paddle.distributed.fleet import strategy as _strategy
from paddle.distributed.fleet.api import made_last as _made_last
from paddle.distributed.fleet.optimizer import DistributedOptimizer as _DistributedOptimizer

_RENAMED = {"exec_strategy": "execution_strategy", "forward_recompute": "recompute", "use_amp": "amp",
            "use_local_sgd": "localsgd", "fuse_memory_size": "fuse_grad_size_in_MB"}
_CONFIGS = {"recompute_checkpoints": ("recompute_configs", "checkpoints"),
            "amp_loss_scaling": ("amp_configs", "init_loss_scaling")}
# How the original found its workers, and what they averaged: gradients, or parameters (use_local_sgd).
_LOCAL = "local_sgd"
_ACCEPTED = {"mode": ("nccl2", "collective"), "collective_mode": (None, "grad_allreduce", _LOCAL)}


class DistributedStrategy(_strategy.DistributedStrategy):
    """A BuildStrategy with some switches, as 1.x had it. It took any attribute: one that means nothing here is noted with
    a warning."""

    def __setattr__(self, name, value):
        if name in _ACCEPTED:
            if value not in _ACCEPTED[name]:
                raise ValueError(f"DistributedStrategy.{name}: one of {_ACCEPTED[name]}, got {value!r}")
            if value == _LOCAL:
                self.localsgd = True
        elif name in _CONFIGS:
            configs, key = _CONFIGS[name]
            super().__setattr__(configs, {key: value})
        elif name in self.native.get_configs("build_strategy"):
            self.native.set_configs("build_strategy", {name: value})
        elif name in _RENAMED or name.startswith("_") or hasattr(self, name):
            super().__setattr__(_RENAMED.get(name, name), value)
        else:
            warnings.warn(f"DistributedStrategy.{name} is not used: FleetX has no such setting", stacklevel=2)
            object.__setattr__(self, name, value)

    def __getattr__(self, name):
        if name in _ACCEPTED:
            return _LOCAL if name == "collective_mode" and self.localsgd else _ACCEPTED[name][0]
        if name in _CONFIGS:
            configs, key = _CONFIGS[name]
            return super().__getattr__(configs)[key]
        build = {} if name.startswith("__") else self.native.get_configs("build_strategy")
        return build[name] if name in build else super().__getattr__(_RENAMED.get(name, name))


class CollectiveOptimizer(_DistributedOptimizer):
    """What fleet.distributed_optimizer makes; scripts of 1.x also make it themselves."""

    def __init__(self, optimizer, strategy=None):
        super().__init__(optimizer, strategy)
        _made_last(self)


class _Collective:
    """The functions of paddle.distributed.fleet; init is collective."""

    def init(self, role_maker=None):
        _new.init(role_maker, is_collective=True)

    # The original keeps a copy of the program before it is changed for workers; here one is both.
    _origin_program = _transpiled_program = property(lambda self: _new.main_program)

    def __getattr__(self, name):
        return getattr(_new, name)


fleet = _Collective()

_CHECKPOINTS = "fleet.save_persistables, fluid.io.load_persistables, and the epoch in a file of the script"
__getattr__ = _refuse.getter(__name__, {"TrainStatus": _CHECKPOINTS, "Checkpoint": _CHECKPOINTS,
                                        "DistFCConfig": "paddle.distributed.split", "LambConfig": "strategy.lamb",
                                        "CollectiveOpBasedOptimizer": "CollectiveOptimizer"})
