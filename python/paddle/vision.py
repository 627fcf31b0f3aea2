"""Which library decodes pictures. JPEG files are decoded in C++ whatever is chosen; the name is kept for scripts."""
from paddle import _refuse

__path__ = []  # importing one of its modules asks paddle._missing_modules

_backend = "pil"


def set_image_backend(backend):
    global _backend
    if backend not in ("pil", "cv2", "tensor"):
        raise ValueError(f"set_image_backend: one of 'pil', 'cv2' and 'tensor', got {backend!r}")
    _backend = backend


def get_image_backend():
    return _backend


__getattr__ = _refuse.getter(__name__, {
    "models": "fleetx.applications", "transforms": "fleetx's data loaders", "datasets": "paddle.dataset",
    "ops": "paddle.nn.functional", "image_load": "fleetx's data loaders"})
