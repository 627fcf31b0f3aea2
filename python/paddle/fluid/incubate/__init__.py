from paddle.fluid.incubate import fleet  # noqa: F401
from paddle import _refuse

__getattr__ = _refuse.getter(__name__, {
    "data_generator": "paddle.io.DataLoader.from_generator; data generators feed parameter-server training, which is not "
                      "built yet"})
