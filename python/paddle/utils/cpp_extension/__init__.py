"""Ops of the user. Here they are C++ files of the library (docs/add-an-op.md): nothing is compiled from Python."""
from paddle._refuse import refuse as _refuse, refused as _refused

__all__ = ["CppExtension", "CUDAExtension", "BuildExtension", "setup", "load", "get_build_directory"]

_NEAREST = "an op in C++: docs/add-an-op.md"
for _name in [*__all__, "load_op_meta_info_and_register_op", "_jit_compile", "_import_module_from_library"]:
    globals()[_name] = _refused(f"paddle.utils.cpp_extension.{_name}", _NEAREST)
del _name
CUDA_HOME = ""


class BuildExtension:  # some derive from it
    def __init__(self, *args, **kwargs):
        raise _refuse("paddle.utils.cpp_extension.BuildExtension", _NEAREST)
