"""Layers over sequences, by the module of 1.x."""
from paddle import _refuse
from paddle.fluid import layers as _layers
from paddle.fluid.layers.sequence import *  # noqa: F401,F403

__getattr__ = _refuse.getter(__name__, _layers._REFUSED)
