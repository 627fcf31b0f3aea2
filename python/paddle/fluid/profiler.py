"""paddle.utils.profiler, by its name in 1.x."""
from paddle.utils.profiler import cuda_profiler, profiler, reset_profiler, start_profiler, stop_profiler  # noqa: F401
