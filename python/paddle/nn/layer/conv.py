"""Convolutions, by their module in 2.0."""
from paddle import _refuse
from paddle.nn import Conv1D, Conv2D, Conv2DTranspose, Conv3D  # noqa: F401

__getattr__ = _refuse.getter(__name__, {})
