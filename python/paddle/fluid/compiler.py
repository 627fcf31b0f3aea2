from paddle._executor import BuildStrategy, CompiledProgram, ExecutionStrategy  # noqa: F401
