from paddle.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension, load, setup  # noqa: F401
