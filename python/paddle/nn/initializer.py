"""First values of parameters."""
import math

import numpy

from paddle import _refuse
from paddle._native import native
from paddle.utils import unique_name

__all__ = ["Constant", "Normal", "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform", "KaimingNormal",
           "KaimingUniform", "Assign", "Bilinear", "set_global_initializer"]


class Initializer:
    def options(self, shape):
        """As the C++ side takes it."""
        raise NotImplementedError

    def __call__(self, param, block=None):
        """The parameter's first values are these instead: the startup program sets them, after those that it had."""
        startup = param.program.started_by()
        if not startup.ir.has(param.name):
            raise native.InvalidArgumentError(f"'{param.name}' is no parameter of {startup.ir.op_count()} ops of the startup program")
        self.fill(startup, param)
        return param

    def fill(self, startup, variable):
        """`startup` gives these values to a variable that it has."""
        from paddle import _graph
        attrs = self.options(list(variable.shape))
        attrs.update(shape=list(variable.shape), dtype=str(variable.dtype))
        with _graph.program_guard(startup, _graph.Program()):
            _graph.emit(_OPS[attrs.pop("kind")], {}, attrs, {"out": [variable.name]},
                        unique_name.generate(variable.name + ".set"))


_OPS = {"constant": "fill", "normal": "gaussian", "truncated_normal": "truncated_gaussian", "uniform": "uniform",
        "assign": "assign_value"}

class Constant(Initializer):
    def __init__(self, value=0.0):
        self.value = value

    def options(self, shape):
        return {"kind": "constant", "value": float(self.value)}


class Normal(Initializer):
    def __init__(self, mean=0.0, std=1.0, name=None, seed=0):
        self.mean, self.std, self.seed = mean, std, seed

    def options(self, shape):
        return {"kind": "normal", "mean": float(self.mean), "std": float(self.std), "seed": self.seed}


class TruncatedNormal(Normal):
    """Cut at two standard deviations."""

    def options(self, shape):
        return dict(super().options(shape), kind="truncated_normal")


class Uniform(Initializer):
    def __init__(self, low=-1.0, high=1.0, name=None, seed=0):
        self.low, self.high, self.seed = low, high, seed

    def options(self, shape):
        return {"kind": "uniform", "low": float(self.low), "high": float(self.high), "seed": self.seed}


def fans(shape):
    """[in, out] of a matrix; [out, in, kernel...] of a convolution; a vector counts as both."""
    if len(shape) == 0:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    if len(shape) == 2:
        return shape[0], shape[1]
    field = 1
    for d in shape[2:]:
        field *= d
    return shape[1] * field, shape[0] * field


class _Scaled(Initializer):
    """Zero mean, variance gain / n, where n depends on the shape."""

    def __init__(self, uniform, seed=0):
        self.uniform, self.seed = uniform, seed

    def variance(self, shape):
        raise NotImplementedError

    def options(self, shape):
        variance = self.variance(shape)
        if self.uniform:
            limit = math.sqrt(3.0 * variance)
            return Uniform(-limit, limit, seed=self.seed).options(shape)
        return Normal(0.0, math.sqrt(variance), seed=self.seed).options(shape)


class _Xavier(_Scaled):
    def __init__(self, uniform, fan_in=None, fan_out=None, seed=0):
        super().__init__(uniform, seed)
        self.fan_in, self.fan_out = fan_in, fan_out

    def variance(self, shape):
        fan_in, fan_out = fans(shape)
        fan_in = fan_in if self.fan_in is None else self.fan_in
        fan_out = fan_out if self.fan_out is None else self.fan_out
        return 2.0 / (fan_in + fan_out)


class XavierUniform(_Xavier):
    def __init__(self, fan_in=None, fan_out=None, name=None):
        super().__init__(True, fan_in, fan_out)


class XavierNormal(_Xavier):
    def __init__(self, fan_in=None, fan_out=None, name=None):
        super().__init__(False, fan_in, fan_out)


class _Kaiming(_Scaled):
    def __init__(self, uniform, fan_in=None, seed=0, gain=math.sqrt(2.0)):
        super().__init__(uniform, seed)
        self.fan_in, self.gain = fan_in, gain

    def variance(self, shape):
        return self.gain ** 2 / (fans(shape)[0] if self.fan_in is None else self.fan_in)


def _gain(nonlinearity, negative_slope):
    """How much an activation takes from the deviation of its input."""
    gains = {"relu": math.sqrt(2.0), "leaky_relu": math.sqrt(2.0 / (1 + negative_slope ** 2)), "tanh": 5.0 / 3,
             "selu": 3.0 / 4, "sigmoid": 1.0, "linear": 1.0}
    if nonlinearity not in gains:
        raise ValueError(f"nonlinearity must be one of {' '.join(gains)}, got {nonlinearity!r}")
    return gains[nonlinearity]


class KaimingUniform(_Kaiming):
    def __init__(self, fan_in=None, negative_slope=0.0, nonlinearity="relu"):
        super().__init__(True, fan_in, gain=_gain(nonlinearity, negative_slope))


class KaimingNormal(_Kaiming):
    def __init__(self, fan_in=None, negative_slope=0.0, nonlinearity="relu"):
        super().__init__(False, fan_in, gain=_gain(nonlinearity, negative_slope))


class Assign(Initializer):
    """Given values: a NumPy array, a list or a number."""

    def __init__(self, value, name=None):
        self.value = numpy.asarray(value)

    def options(self, shape):
        if self.value.size != numpy.prod(shape, dtype=numpy.int64):
            raise ValueError(f"Assign: the parameter has shape {list(shape)}, the values {list(self.value.shape)}")
        return {"kind": "assign", "values": self.value.astype("float64").ravel().tolist()}


class Bilinear(Initializer):
    """Of a transposed convolution that enlarges pictures: weights by distance from the middle of the kernel."""

    def options(self, shape):
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear: the parameter must be [out, in, size, size], it has shape {list(shape)}")
        factor = numpy.ceil(shape[3] / 2.0)
        places = numpy.arange(shape[3])
        slope = 1 - numpy.abs(places / factor - (2 * factor - 1 - factor % 2) / (2.0 * factor))
        values = numpy.broadcast_to(numpy.outer(slope, slope), shape)
        return {"kind": "assign", "values": values.ravel().tolist()}


_global = {False: None, True: None}  # by: is it a bias?


def set_global_initializer(weight_init, bias_init=None):
    """For parameters that are given no initializer of their own."""
    for init in (weight_init, bias_init):
        if init is not None and not isinstance(init, Initializer):
            raise TypeError(f"set_global_initializer takes initializers, not {type(init).__name__}")
    _global[False], _global[True] = weight_init, bias_init


def default_for(is_bias, fallback=None):
    return _global[is_bias] or fallback or (Constant(0.0) if is_bias else XavierUniform())


__getattr__ = _refuse.getter(__name__, {
    "Dirac": "Assign with the values", "Orthogonal": "Assign with the values",
    "calculate_gain": "nothing"}, lazy=_refuse.moved(
        "paddle.fluid.initializer", "NumpyArrayInitializer ConstantInitializer UniformInitializer NormalInitializer "
        "TruncatedNormalInitializer XavierInitializer MSRAInitializer"))
