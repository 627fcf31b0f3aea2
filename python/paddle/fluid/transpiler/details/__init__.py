from paddle.fluid.transpiler.details.program_utils import op_to_code, program_to_code, variable_to_code  # noqa: F401
