"""Layers by the modules of 2.0 that define them."""
from paddle import _refuse
from paddle.nn.layer.layers import Layer  # noqa: F401

__getattr__ = _refuse.getter(__name__, {}, lazy={name: f"paddle.nn.layer.{name}" for name in (
    "activation", "common", "container", "conv", "distance", "loss", "norm", "pooling", "rnn", "transformer", "vision")})
