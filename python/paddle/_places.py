"""Where programs run: always this process."""
from paddle import _graph
from paddle._native import native


class Place:
    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash((type(self), tuple(vars(self).items())))


class CPUPlace(Place):
    def __repr__(self):
        return "CPUPlace"


class CUDAPlace(Place):
    """Slot `i` of this machine: where there is no accelerator, a share of its cores."""

    def __init__(self, device_id=0):
        self.device_id = int(device_id)

    def get_device_id(self):
        return self.device_id

    def __repr__(self):
        return f"CUDAPlace({self.device_id})"


class CUDAPinnedPlace(Place):
    def __repr__(self):
        return "CUDAPinnedPlace"


class XPUPlace(CUDAPlace):
    def __repr__(self):
        return f"XPUPlace({self.device_id})"


def cpu_places(device_count=None):
    return [CPUPlace()] * (device_count or 1)


def _slots():
    """Numbers of the slots that the launcher has given to this process."""
    return [int(i) for i in (native.env("FLAGS_selected_gpus") or "0").split(",")]


def cuda_places(device_ids=None):
    if device_ids is None:
        device_ids = _slots()
    return [CUDAPlace(i) for i in _graph.as_list(device_ids)]


def cuda_pinned_places(device_count=None):
    return [CUDAPinnedPlace()] * (device_count or 1)


def is_compiled_with_cuda():
    """Does CUDAPlace(i) work? It does: without an accelerator it is a share of the cores, and scripts that ask go on.
    With FLEETX_CUDA=0 the answer is False."""
    return (native.env("FLEETX_CUDA") or "1") != "0"


def cuda_device_count():
    """How many slots this process has; 0 where is_compiled_with_cuda() is False."""
    return len(_slots()) if is_compiled_with_cuda() else 0
