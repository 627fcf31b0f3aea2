"""Comparisons give bool; logical functions take it."""
import numpy

from paddle._graph import Variable, call
from paddle.tensor import math


def _compare(op):
    def function(x, y, name=None):
        if not isinstance(x, Variable) and isinstance(y, Variable):
            x = math.as_variable(x, y)
        return call(op, {"x": x, "y": math.as_variable(y, x)}, name=name)
    function.__name__ = function.__qualname__ = op
    return function


equal = _compare("equal")
not_equal = _compare("not_equal")
less_than = _compare("less_than")
less_equal = _compare("less_equal")
greater_than = _compare("greater_than")
greater_equal = _compare("greater_equal")


def logical_and(x, y, out=None, name=None):
    return call("logical_and", {"x": x, "y": y}, name=name)


def logical_or(x, y, out=None, name=None):
    return call("logical_or", {"x": x, "y": y}, name=name)


def logical_xor(x, y, out=None, name=None):
    return call("logical_xor", {"x": x, "y": y}, name=name)


def logical_not(x, out=None, name=None):
    return call("logical_not", {"x": x}, name=name)


def equal_all(x, y, name=None):
    return math.all(equal(x, y), name=name)


def isclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    bound = math.scale(math.abs(y), rtol, atol)
    return less_equal(math.abs(math.subtract(x, y)), bound, name)


def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    return math.all(isclose(x, y, rtol, atol), name=name)


def is_tensor(x):
    return isinstance(x, Variable)


def is_empty(x, name=None):
    from paddle.tensor import creation
    return creation.assign(numpy.array([x.size == 0]))
