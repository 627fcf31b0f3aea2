from paddle.utils.cpp_extension import _import_module_from_library, _jit_compile, load_op_meta_info_and_register_op  # noqa: F401
