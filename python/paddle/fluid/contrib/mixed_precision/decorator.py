from paddle.static.amp import OptimizerWithMixedPrecision, decorate  # noqa: F401
