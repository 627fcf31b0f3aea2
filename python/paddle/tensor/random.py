"""Random values: other ones in every step, the same ones in every run."""
from paddle import _dtype
from paddle import _graph
from paddle._native import native, user_line
from paddle.tensor import creation
from paddle.utils import unique_name


def _random(kind, shape, first, second, seed, dtype, name):
    from paddle.tensor.manipulation import cast
    numbers, sources = creation.known_shape(shape, kind)
    if sources is not None:
        return cast(_by_lengths(kind, shape, first, second, seed, name), dtype)
    program = _graph.default_main_program()
    layer = name or unique_name.generate(kind)
    made = native.random(program.builder(), kind, numbers, float(first), float(second), int(seed), layer, *user_line())
    out = program._variable(made)
    out.stop_gradient = True
    return cast(out, dtype)


def uniform_like(x, seed=0, name=None):
    """Numbers in [0, 1) in the shape of x. Workers that share a batch draw what one draws for all of it."""
    layer = name or unique_name.generate("uniform_like")
    out = x._program._variable(native.uniform_like(x._program.builder(), x.name, int(seed), layer, *user_line()))
    out.stop_gradient = True
    return out


def _by_lengths(kind, shape, first, second, seed, name):
    """Where a length is one of another variable."""
    from paddle.tensor import math
    like = creation.full(shape, 0.0, "float32")
    share = uniform_like(like, seed, name)
    if kind == "uniform":
        return math.scale(share, second - first, first)
    if kind == "randint":
        return math.scale(math.floor(math.scale(share, float(second - first))), 1.0, float(first))
    radius = math.sqrt(math.scale(math.log(math.scale(share, -1.0, 1.0)), -2.0))  # Box and Muller
    angle = math.cos(math.scale(uniform_like(like, seed), 6.283185307179586))
    return math.scale(math.multiply(radius, angle), second, first)


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
    return manipulation.cast(logic.less_than(uniform_like(x), x), x.dtype)


def randperm(n, dtype="int64", name=None):
    from paddle.tensor import manipulation, search
    return manipulation.cast(search.argsort(rand([int(n)])), dtype)


def multinomial(x, num_samples=1, replacement=False, name=None):
    """Indices drawn with the probabilities x, [classes] or [batch, classes], which need not add up to 1."""
    from paddle.tensor import manipulation, math, search
    if not replacement:  # of the numbers log(u) / p the largest belong to such a draw
        shares = math.log(math.scale(uniform_like(x), -1.0, 1.0))
        return search.topk(math.divide(shares, math.clip(x, 1e-30, None)), int(num_samples), -1)[1]
    every = manipulation.tile(manipulation.unsqueeze(x, -2), [1] * (len(x.shape) - 1) + [int(num_samples), 1])
    waits = math.scale(math.log(math.scale(uniform_like(every), -1.0, 1.0)), -1.0)  # the shortest wait wins
    return search.argmin(math.divide(waits, math.clip(every, 1e-30, None)), -1)
