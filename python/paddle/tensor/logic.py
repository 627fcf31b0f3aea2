"""Comparisons give bool; logical functions take it."""
import numpy

from paddle import _between, _dtype
from paddle._graph import Variable, call
from paddle.tensor import creation, manipulation, math


def _compare(op):
    def function(x, y, name=None):
        x, y = math.operands(x, y)
        return call(op, {"x": x, "y": y}, name=name)
    function.__name__ = function.__qualname__ = op
    return function


equal = _compare("equal")
not_equal = _compare("not_equal")
less_than = _compare("less_than")
less_equal = _compare("less_equal")
greater_than = _compare("greater_than")
greater_equal = _compare("greater_equal")


def _written(made, out):
    return made if out is None else creation.assign(made, out)


def logical_and(x, y, out=None, name=None):
    return _written(call("logical_and", {"x": x, "y": y}, name=name), out)


def logical_or(x, y, out=None, name=None):
    return _written(call("logical_or", {"x": x, "y": y}, name=name), out)


def logical_xor(x, y, out=None, name=None):
    return _written(call("logical_xor", {"x": x, "y": y}, name=name), out)


def logical_not(x, out=None, name=None):
    return _written(call("logical_not", {"x": x}, name=name), out)


def equal_all(x, y, name=None):
    return math.all(equal(x, y), name=name)


def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """|x - y| <= atol + rtol * |y|, element by element. Equal infinities are close; NaN and NaN with equal_nan."""
    x, y = math.operands(x, y)
    if not _dtype.is_float(x.dtype):
        x, y = manipulation.cast(x, "float64"), manipulation.cast(y, "float64")
    near = less_equal(math.abs(math.subtract(x, y)), math.scale(math.abs(y), rtol, atol))
    near = logical_and(near, math.isfinite(y))  # nothing but itself is close to an infinity
    if not equal_nan:
        return logical_or(near, equal(x, y), name=name)
    both_nan = logical_and(not_equal(x, x), not_equal(y, y))
    return logical_or(logical_or(near, equal(x, y)), both_nan, name=name)


def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """Are all elements close, as isclose says? bool [1]."""
    return math.all(isclose(x, y, rtol, atol, equal_nan), name=name)


def is_tensor(x):
    return isinstance(x, Variable)


def is_empty(x, name=None):
    """Has x no elements? bool [1]."""
    if x.size >= 0:
        return creation.assign(numpy.array([x.size == 0]))
    if x.program.between is not None:
        return _between.value_step("is_empty", lambda value: numpy.array([value.size == 0]), [x], [("bool", [1])])[0]
    return equal(creation.numel(x), creation.zeros([1], "int64"))
