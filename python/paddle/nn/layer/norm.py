"""Normalizations, by their module in 2.0."""
from paddle import _refuse
from paddle.nn import (  # noqa: F401
    BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D, GroupNorm, InstanceNorm1D, InstanceNorm2D, LayerNorm,
    LocalResponseNorm, SyncBatchNorm)

__getattr__ = _refuse.getter(__name__, {})
