"""Arithmetic, element by element unless said otherwise, and reductions."""
import numbers

import numpy

from paddle import _dtype
from paddle._graph import Variable, as_list, call, emit
from paddle._native import native
from paddle.tensor import creation


def is_number(value):
    return isinstance(value, (numbers.Number, numpy.number, numpy.bool_)) and not isinstance(value, Variable)


def _unary(op, doc):
    def function(x, name=None):
        return call(op, {"x": x}, name=name)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


exp = _unary("exp", "e to the power of x.")
log = _unary("log", "The natural logarithm.")
sqrt = _unary("sqrt", "The square root.")
rsqrt = _unary("rsqrt", "1 / sqrt(x).")
reciprocal = _unary("reciprocal", "1 / x.")
square = _unary("square", "x * x.")
abs = _unary("abs", "The absolute value.")
sign = _unary("sign", "-1, 0 or 1.")
floor = _unary("floor", "The largest whole number that is not above x.")
ceil = _unary("ceil", "The smallest whole number that is not below x.")
round = _unary("round", "The nearest whole number.")
sin = _unary("sin", "The sine.")
cos = _unary("cos", "The cosine.")
tanh = _unary("tanh", "The hyperbolic tangent.")
erf = _unary("erf", "The error function.")
asin = _unary("asin", "The angle of this sine.")
acos = _unary("acos", "The angle of this cosine.")
atan = _unary("atan", "The angle of this tangent.")
trunc = _unary("trunc", "Without what comes after the point.")


def tan(x, name=None):
    return divide(sin(x), cos(x), name)


def sinh(x, name=None):
    return scale(subtract(exp(x), exp(neg(x))), 0.5, name=name)


def cosh(x, name=None):
    return scale(add(exp(x), exp(neg(x))), 0.5, name=name)


def log2(x, name=None):
    return scale(log(x), 1.0 / numpy.log(2.0), name=name)


def log10(x, name=None):
    return scale(log(x), 1.0 / numpy.log(10.0), name=name)


def log1p(x, name=None):
    return log(scale(x, 1.0, 1.0), name)


def expm1(x, name=None):
    return scale(exp(x), 1.0, -1.0, name=name)


def neg(x, name=None):
    return scale(x, -1.0, name=name)


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale * x + bias, or scale * (x + bias)."""
    if isinstance(scale, Variable):
        out = multiply(x, scale) if bias_after_scale else multiply(add_number(x, bias), scale)
        return activate(add_number(out, bias) if bias_after_scale else out, act)
    attrs = {"scale": float(scale), "bias": float(bias), "bias_after_scale": bool(bias_after_scale)}
    return activate(call("scale", {"x": _uncut(x, scale, bias)}, attrs, name), act)


def add_number(x, number):
    return x if number == 0 else call("scale", {"x": x}, {"scale": 1.0, "bias": float(number)})


def activate(x, act):
    if not act:
        return x
    from paddle.nn.functional import activation
    return activation.by_name(x, act)


def _uncut(x, *factors):
    """Integers as float32 where a factor is a fraction; else x."""
    fractions = [f for f in factors if numpy.isfinite(f) and float(f) % 1]
    return promoted(x, 0.5) if fractions else x


# ---- two operands ----
def promoted(x, number):
    """x in the type in which it meets a Python number: integers and bool meet a float as float32 (the number is never
    cut), bool meets a whole number as int64."""
    from paddle.tensor.manipulation import cast
    if _dtype.is_float(x.dtype):
        return x
    if isinstance(number, (float, numpy.floating)):
        return cast(x, "float32")
    return cast(x, "int64") if x.dtype == "bool" and not isinstance(number, (bool, numpy.bool_)) else x


def operands(x, y):
    """Both as variables. Where one is a number or an array, it takes the type of the other; beside integers, floats
    stay what they are and the integers become float32."""
    from paddle.tensor.manipulation import cast
    if isinstance(x, Variable) and isinstance(y, Variable):
        return x, y
    if not isinstance(x, Variable):
        if not isinstance(y, Variable):
            raise TypeError("one of the two operands must be a variable of a program")
        right, left = operands(y, x)
        return left, right
    if is_number(y):
        x = promoted(x, y)
        return x, creation.full([1], y, x.dtype)
    if not isinstance(y, (numpy.ndarray, list, tuple)):
        raise TypeError(f"an operand is a {type(y).__name__}; variables, numbers and arrays can be operands")
    array = numpy.asarray(y)
    if array.dtype.kind == "f" and not _dtype.is_float(x.dtype):
        x = cast(x, "float32")
    elif array.dtype.kind in "iu" and x.dtype == "bool":
        x = cast(x, "int64")
    return x, creation.assign(array.astype(x.dtype))


def _binary(op, doc):
    def function(x, y, axis=-1, name=None):
        x, y = operands(x, y)
        return call(op, {"x": x, "y": y}, {"axis": axis}, name)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function


_add = _binary("elementwise_add", "")
_subtract = _binary("elementwise_sub", "")
_multiply = _binary("elementwise_mul", "")
_divide = _binary("elementwise_div", "")
_maximum = _binary("elementwise_max", "")
_minimum = _binary("elementwise_min", "")
_pow = _binary("elementwise_pow", "")
_mod = _binary("elementwise_mod", "")
_floordiv = _binary("elementwise_floordiv", "")


def add(x, y, name=None):
    """x + y; shapes broadcast."""
    return _add(x, y, name=name)


def subtract(x, y, name=None):
    """x - y; shapes broadcast."""
    return _subtract(x, y, name=name)


def multiply(x, y, axis=-1, name=None):
    """x * y; shapes broadcast."""
    return _multiply(x, y, axis, name)


def divide(x, y, name=None):
    """x / y; whole numbers are divided as float32."""
    from paddle.tensor.manipulation import cast
    x, y = operands(x, y)
    if not _dtype.is_float(x.dtype):
        x, y = cast(x, "float32"), cast(y, "float32")
    return _divide(x, y, name=name)


def maximum(x, y, axis=-1, name=None):
    return _maximum(x, y, axis, name)


def minimum(x, y, axis=-1, name=None):
    return _minimum(x, y, axis, name)


def remainder(x, y, name=None):
    return _mod(x, y, name=name)


mod = floor_mod = remainder


def floor_divide(x, y, name=None):
    return _floordiv(x, y, name=name)


def pow(x, y, name=None):
    """x to the power of y, a number or a variable."""
    return power(promoted(x, y), y, name) if is_number(y) else _pow(x, y, name=name)


def power(x, number, name=None):
    """x to the power of a number, in the type of x."""
    if _dtype.is_float(x.dtype):
        return call("pow", {"x": x}, {"factor": float(number)}, name)
    return _pow(x, creation.full([1], number, x.dtype), name=name)


def add_n(inputs, name=None):
    """The sum of variables of one shape."""
    return call("sum", {"xs": as_list(inputs)}, name=name)


def clip(x, min=None, max=None, name=None):
    low = -3.4e38 if min is None else float(min)
    high = 3.4e38 if max is None else float(max)
    return call("clip", {"x": _uncut(x, low, high)}, {"min": low, "max": high}, name)


def increment(x, value=1.0, name=None):
    """Adds `value` to x, in place."""
    from paddle.tensor import creation
    if creation.assignment_condition() is not None or not x._info["persistable"]:
        return creation.assign(scale(x, 1.0, float(value)), x)
    emit("increment", {"x": x}, {"value": float(value)}, {"out": x}, name)
    return x


def cumsum(x, axis=None, dtype=None, name=None):
    from paddle.tensor import manipulation
    if dtype is not None:
        x = manipulation.cast(x, dtype)
    if axis is None:
        x, axis = manipulation.reshape(x, [-1]), 0
    return call("cumsum", {"x": x}, {"axis": int(axis)}, name)


# ---- reductions ----
def axes(axis):
    if axis is None:
        return []
    return [int(a) for a in as_list(axis)]


def _reduce(op, x, axis, keepdim, name):
    return call(op, {"x": x}, {"dim": axes(axis), "keep_dim": bool(keepdim)}, name)


def sum(x, axis=None, dtype=None, keepdim=False, name=None):
    """The sum over `axis` (a number or a list); over all: shape [1]."""
    from paddle.tensor.manipulation import cast
    if dtype is not None:
        x = cast(x, dtype)
    elif x.dtype in ("bool", "int32"):
        x = cast(x, "int64")
    return _reduce("reduce_sum", x, axis, keepdim, name)


def mean(x, axis=None, keepdim=False, name=None):
    """The mean over `axis`; over all: shape [1]."""
    if axis is None and not keepdim:
        return call("mean", {"x": x}, name=name)
    return _reduce("reduce_mean", x, axis, keepdim, name)


def max(x, axis=None, keepdim=False, name=None):
    return _reduce("reduce_max", x, axis, keepdim, name)


def min(x, axis=None, keepdim=False, name=None):
    return _reduce("reduce_min", x, axis, keepdim, name)


def prod(x, axis=None, keepdim=False, dtype=None, name=None):
    if dtype is not None:
        from paddle.tensor.manipulation import cast
        x = cast(x, dtype)
    return _reduce("reduce_prod", x, axis, keepdim, name)


def all(x, axis=None, keepdim=False, name=None):
    return _reduce("reduce_all", x, axis, keepdim, name)


def any(x, axis=None, keepdim=False, name=None):
    return _reduce("reduce_any", x, axis, keepdim, name)


def var(x, axis=None, unbiased=True, keepdim=False, name=None):
    from paddle.tensor.manipulation import cast, shape_product
    centre = _reduce("reduce_mean", x, axis, True, None) if axis is not None or len(x.shape) > 0 else mean(x)
    squares = _reduce("reduce_mean", square(subtract(x, centre)), axis, keepdim, None)
    if not unbiased:
        return squares
    count = cast(shape_product(x, axis), x.dtype)
    return multiply(squares, divide(count, add_number(count, -1.0)), name=name)


def std(x, axis=None, unbiased=True, keepdim=False, name=None):
    return sqrt(var(x, axis, unbiased, keepdim), name)


def logsumexp(x, axis=None, keepdim=False, name=None):
    top = _reduce("reduce_max", x, axis, True, None)
    top.stop_gradient = True
    total = log(_reduce("reduce_sum", exp(subtract(x, top)), axis, True, None))
    out = add(total, top)
    if keepdim:
        return out
    from paddle.tensor.manipulation import reshape, squeeze
    return reshape(out, [1]) if axis is None else squeeze(out, axis, name)


# ---- products ----
def matmul(x, y, transpose_x=False, transpose_y=False, name=None):
    """Over the last two dimensions; those before are batches and broadcast."""
    return call("matmul", {"x": x, "y": y},
                {"transpose_x": bool(transpose_x), "transpose_y": bool(transpose_y)}, name)


def mm(input, mat2, name=None):
    return matmul(input, mat2, name=name)


bmm = mm


def dot(x, y, name=None):
    """The inner product of the last dimension."""
    rank = len(x.shape)
    return _reduce("reduce_sum", multiply(x, y), -1, rank > 1, name)


def mv(x, vec, name=None):
    return matmul(x, vec, name=name)


def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    """beta * input + alpha * x @ y."""
    return add(scale(input, beta), scale(matmul(x, y), alpha), name)


def norm(x, p="fro", axis=None, keepdim=False, name=None):
    if p in ("fro", 2, 2.0):
        return sqrt(_reduce("reduce_sum", square(x), axis, keepdim, None), name)
    if p in (1, 1.0):
        return _reduce("reduce_sum", abs(x), axis, keepdim, name)
    if p == float("inf"):
        return _reduce("reduce_max", abs(x), axis, keepdim, name)
    if is_number(p) and p > 0:
        return pow(_reduce("reduce_sum", pow(abs(x), float(p)), axis, keepdim, None), 1.0 / p, name)
    raise native.InvalidArgumentError(f"norm: p must be 'fro', a number above 0 or inf, got {p!r}")


def dist(x, y, p=2, name=None):
    return norm(subtract(x, y), p, name=name)


def isfinite(x, name=None):
    from paddle.tensor import logic
    return logic.equal(subtract(x, x), creation.full([1], 0.0, x.dtype), name)


def isnan(x, name=None):
    from paddle.tensor import logic
    return logic.not_equal(x, x, name)


def isinf(x, name=None):
    from paddle.tensor import logic
    return logic.logical_not(logic.logical_or(isfinite(x), isnan(x)), name)


def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    return scale(tanh(scale(x, scale_a)), scale_b, name=name)


def multiplex(inputs, index, name=None):
    """Row i of the result is row i of inputs[index[i]]."""
    from paddle.tensor import manipulation
    stacked = manipulation.stack(inputs, 0)
    rows = manipulation.reshape(manipulation.cast(index, "int64"), [-1, 1])
    one = creation.ones_like(rows)
    place = subtract(call("cumsum", {"x": one}, {"axis": 0}), one)  # 0, 1, 2, ...
    return manipulation.gather_nd(stacked, manipulation.concat([rows, place], 1), name)


def lerp(x, y, weight, name=None):
    """x + weight * (y - x)."""
    difference = subtract(y, x)
    return add(x, scale(difference, float(weight)) if is_number(weight) else multiply(difference, weight), name)


fmax, fmin = maximum, minimum
