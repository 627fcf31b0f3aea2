from paddle.fluid.incubate import fleet  # noqa: F401
from paddle import _refuse

__getattr__ = _refuse.getter(__name__, {}, lazy={"data_generator": "paddle.fluid.incubate.data_generator"})
