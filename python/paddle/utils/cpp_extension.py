"""Ops of the user. Here they are C++ files of the library (docs/add-an-op.md): nothing is compiled from Python."""
from paddle._refuse import refused as _refused

__all__ = ["CppExtension", "CUDAExtension", "BuildExtension", "setup", "load", "get_build_directory"]

_NEAREST = "an op in C++: docs/add-an-op.md"
for _name in __all__:
    globals()[_name] = _refused(f"paddle.utils.cpp_extension.{_name}", _NEAREST)
del _name
