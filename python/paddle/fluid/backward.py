from paddle.static import append_backward, gradients  # noqa: F401
