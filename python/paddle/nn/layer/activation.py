"""Activations as layers, by their module in 2.0."""
from paddle import _refuse
from paddle.nn import (  # noqa: F401
    CELU, ELU, GELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Maxout,
    Mish, PReLU, ReLU, ReLU6, SELU, Sigmoid, Silu, Softmax, Softplus, Softshrink, Softsign, Swish, Tanh,
    Tanhshrink, ThresholdedReLU)

__getattr__ = _refuse.getter(__name__, {})
