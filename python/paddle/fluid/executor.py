from paddle._executor import Executor, global_scope, scope_guard  # noqa: F401
