from paddle.nn.layer.layers import Layer  # noqa: F401
