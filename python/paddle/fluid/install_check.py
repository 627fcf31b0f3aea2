from paddle.utils import run_check  # noqa: F401
