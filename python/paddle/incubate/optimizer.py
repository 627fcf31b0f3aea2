"""Optimizers by averages."""
from paddle import _refuse
from paddle.optimizer._averages import Lookahead as LookAhead  # noqa: F401
from paddle.optimizer._averages import ModelAverage  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"LBFGS": "paddle.optimizer.SGD", "DistributedFusedLamb": "paddle.optimizer.Lamb"},
                             lazy=_refuse.moved("paddle.fluid.optimizer", "PipelineOptimizer RecomputeOptimizer "
                                                "GradientMergeOptimizer ExponentialMovingAverage"))
