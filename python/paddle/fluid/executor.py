from paddle._executor import Executor, FetchHandler, global_scope, scope_guard  # noqa: F401


def _fetch_var(name, scope=None, return_numpy=True):
    """The value of a variable that lives from step to step, by its name."""
    found = (scope or global_scope()).find_var(name)
    if found is None:
        raise ValueError(f"the scope has no variable '{name}'")
    return found.get_tensor().numpy() if return_numpy else found.get_tensor()
