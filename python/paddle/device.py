from paddle._places import cuda_device_count  # noqa: F401
from paddle import get_device, is_compiled_with_cuda, is_compiled_with_xpu, set_device  # noqa: F401


def get_cudnn_version():
    return None
