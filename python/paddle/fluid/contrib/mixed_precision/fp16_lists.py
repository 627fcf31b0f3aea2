from paddle.static.amp import AutoMixedPrecisionLists, CustomOpLists  # noqa: F401
