"""Activations."""
from paddle._graph import call
from paddle._native import native
from paddle.tensor import creation, logic, manipulation, math


def relu(x, name=None):
    return call("relu", {"x": x}, name=name)


def relu6(x, name=None):
    return call("relu6", {"x": x}, name=name)


def leaky_relu(x, negative_slope=0.01, name=None):
    return call("leaky_relu", {"x": x}, {"alpha": float(negative_slope)}, name)


def elu(x, alpha=1.0, name=None):
    return call("elu", {"x": x}, {"alpha": float(alpha)}, name)


def celu(x, alpha=1.0, name=None):
    return math.scale(elu(math.scale(x, 1.0 / alpha), 1.0), alpha, name=name)


def selu(x, scale=1.0507009873554804934193349852946, alpha=1.6732632423543772848170429916717, name=None):
    return math.scale(elu(x, alpha), scale, name=name)


def gelu(x, approximate=False, name=None):
    return call("gelu", {"x": x}, {"approximate": bool(approximate)}, name)


def sigmoid(x, name=None):
    return call("sigmoid", {"x": x}, name=name)


def log_sigmoid(x, name=None):
    return math.neg(softplus(math.neg(x)), name)


def tanh(x, name=None):
    return call("tanh", {"x": x}, name=name)


def swish(x, name=None):
    return call("swish", {"x": x}, name=name)


silu = swish


def mish(x, name=None):
    return math.multiply(x, tanh(softplus(x)), name=name)


def softplus(x, beta=1.0, threshold=20.0, name=None):
    """log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold."""
    if beta == 1 and threshold == 20:  # from 20 on the two do not differ in float32
        return call("softplus", {"x": x}, name=name)
    soft = math.scale(call("softplus", {"x": math.scale(x, beta)}), 1.0 / beta)
    return manipulation.where(logic.greater_than(math.scale(x, beta), float(threshold)), x, soft, name)


def softsign(x, name=None):
    return math.divide(x, math.add_number(math.abs(x), 1.0), name)


def hardsigmoid(x, slope=0.1666667, offset=0.5, name=None):
    return call("hard_sigmoid", {"x": x}, {"slope": float(slope), "offset": float(offset)}, name)


def hardswish(x, name=None):
    return call("hard_swish", {"x": x}, name=name)


def hardtanh(x, min=-1.0, max=1.0, name=None):
    return math.clip(x, min, max, name)


def hardshrink(x, threshold=0.5, name=None):
    keep = manipulation.cast(logic.greater_than(math.abs(x), creation.full([1], threshold)), x.dtype)
    keep.stop_gradient = True
    return math.multiply(x, keep, name=name)


def softshrink(x, threshold=0.5, name=None):
    return math.subtract(relu(math.add_number(x, -threshold)), relu(math.scale(x, -1.0, -threshold)), name)


def tanhshrink(x, name=None):
    return math.subtract(x, tanh(x), name)


def thresholded_relu(x, threshold=1.0, name=None):
    keep = manipulation.cast(logic.greater_than(x, creation.full([1], threshold)), x.dtype)
    keep.stop_gradient = True
    return math.multiply(x, keep, name=name)


def prelu(x, weight, data_format="NCHW", name=None):
    rank = len(x.shape)
    if weight.shape[0] > 1 and rank > 2 and not data_format.endswith("C"):
        weight = manipulation.reshape(weight, [1, -1] + [1] * (rank - 2))
    return math.subtract(relu(x), math.multiply(weight, relu(math.neg(x))), name)


def maxout(x, groups, axis=1, name=None):
    shape = list(x.shape)
    axis %= len(shape)
    split = [0 if d < 0 else d for d in shape[:axis]] + [shape[axis] // groups, groups] + shape[axis + 1:]
    if shape[axis] < 0 or shape[axis] % groups:
        raise native.InvalidArgumentError(f"maxout: {shape[axis]} channels cannot be divided by groups={groups}")
    return math.max(manipulation.reshape(x, split), axis + 1, name=name)


def glu(x, axis=-1, name=None):
    value, gate = manipulation.split(x, 2, axis)
    return math.multiply(value, sigmoid(gate), name=name)


def softmax(x, axis=-1, dtype=None, name=None):
    if dtype is not None:
        x = manipulation.cast(x, dtype)
    return call("softmax", {"x": x}, {"axis": int(axis)}, name)


def log_softmax(x, axis=-1, dtype=None, name=None):
    if dtype is not None:
        x = manipulation.cast(x, dtype)
    return call("log_softmax", {"x": x}, {"axis": int(axis)}, name)


_BY_NAME = {"relu": relu, "relu6": relu6, "sigmoid": sigmoid, "tanh": tanh, "softmax": softmax, "gelu": gelu,
            "swish": swish, "leaky_relu": lambda x: leaky_relu(x, 0.02), "elu": elu, "softplus": softplus,
            "softsign": softsign, "hard_sigmoid": lambda x: hardsigmoid(x, 0.2), "hard_swish": hardswish,
            "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "square": math.square, "abs": math.abs,
            "mish": mish, "log_softmax": log_softmax, "silu": swish, "identity": lambda x: x}


def by_name(x, name):
    """The `act` argument of layers; None and "" give x itself."""
    if not name:
        return x
    if not isinstance(name, str) and callable(name):
        return name(x)
    if name not in _BY_NAME:
        raise native.InvalidArgumentError(f"no activation '{name}'; known: {' '.join(sorted(_BY_NAME))}")
    return _BY_NAME[name](x)


__all__ = [n for n in dir() if not n.startswith("_") and callable(globals()[n]) and
           getattr(globals()[n], "__module__", "") == __name__ and n != "by_name"]
