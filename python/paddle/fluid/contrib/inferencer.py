from paddle.fluid.contrib.trainer import Inferencer  # noqa: F401
