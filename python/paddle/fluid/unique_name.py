from paddle.utils.unique_name import UniqueNameGenerator, generate, guard, switch  # noqa: F401
