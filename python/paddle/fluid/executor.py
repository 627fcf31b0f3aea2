from paddle._executor import Executor, FetchHandler, global_scope, scope_guard  # noqa: F401
