from paddle.optimizer import Optimizer  # noqa: F401
