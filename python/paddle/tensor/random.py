"""Random values: other ones in every step, the same ones in every run."""
from paddle import _dtype
from paddle import _graph
from paddle._native import native, user_line
from paddle.tensor import creation
from paddle.utils import unique_name


def _random(kind, shape, first, second, seed, dtype, name):
    from paddle.tensor.manipulation import cast
    numbers, source = creation.known_shape(shape, kind)
    if source is not None:
        raise native.UnsupportedError(f"{kind}: the shape must be known")
    program = _graph.default_main_program()
    layer = name or unique_name.generate(kind)
    made = native.random(program.builder(), kind, numbers, float(first), float(second), int(seed), layer, *user_line())
    out = program._variable(made)
    out.stop_gradient = True
    return cast(out, dtype)


def uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None):
    return _random("uniform", shape, min, max, seed, dtype or _dtype.get_default_dtype(), name)


def rand(shape, dtype=None, name=None):
    return uniform(shape, dtype, 0.0, 1.0, 0, name)


def normal(mean=0.0, std=1.0, shape=None, name=None):
    return _random("gaussian", shape or [1], mean, std, 0, _dtype.get_default_dtype(), name)


def gaussian(shape, mean=0.0, std=1.0, dtype=None, name=None):
    return _random("gaussian", shape, mean, std, 0, dtype or _dtype.get_default_dtype(), name)


def standard_normal(shape, dtype=None, name=None):
    return gaussian(shape, 0.0, 1.0, dtype, name)


randn = standard_normal


def randint(low=0, high=None, shape=(1,), dtype="int64", name=None):
    if high is None:
        low, high = 0, low
    return _random("randint", list(shape), low, high, 0, dtype or "int64", name)


def bernoulli(x, name=None):
    from paddle.tensor import logic, manipulation
    return manipulation.cast(logic.less_than(rand(list(x.shape)), x), x.dtype)


def randperm(n, dtype="int64", name=None):
    raise native.UnsupportedError("randperm: shuffle in the reader (paddle.reader.shuffle)")


def multinomial(x, num_samples=1, replacement=False, name=None):
    raise native.UnsupportedError("multinomial is not here; nearest: paddle.uniform")
