"""The few names of the C++ core that scripts use."""
from paddle._executor import (BuildStrategy, CPUPlace, CUDAPinnedPlace, CUDAPlace, EOFException, LoDTensor,  # noqa: F401
                              Scope, global_scope as _global_scope)
from paddle._native import native as _native
from paddle import _refuse

EnforceNotMet = _native.FleetXError


def get_cuda_device_count():
    return 0


def is_compiled_with_cuda():
    return False


__getattr__ = _refuse.getter(__name__, {"PSGPU": "nothing", "VarDesc": "strings such as 'float32'",
                                        "Communicator": "nothing", "Tensor": "numpy arrays", "ops": "paddle.*"})
