from paddle import _refuse
from paddle.fluid import layers as _layers
from paddle.tensor.logic import equal, greater_equal, greater_than, less_equal, less_than, not_equal  # noqa: F401
from paddle.tensor.math import increment  # noqa: F401

__getattr__ = _refuse.getter(__name__, _layers._REFUSED)
