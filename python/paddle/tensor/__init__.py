"""Functions on variables; the same ones are operators and methods of a Variable."""
import numpy

from paddle import _dtype, _refuse
from paddle._graph import Variable
from paddle.tensor import creation, linalg, logic, manipulation, math, random, search
from paddle.tensor.creation import *  # noqa: F401,F403
from paddle.tensor.linalg import *  # noqa: F401,F403
from paddle.tensor.logic import *  # noqa: F401,F403
from paddle.tensor.manipulation import *  # noqa: F401,F403
from paddle.tensor.math import *  # noqa: F401,F403
from paddle.tensor.random import *  # noqa: F401,F403
from paddle.tensor.search import *  # noqa: F401,F403
from paddle.tensor._set_item import set_item


def _same_type(x, y):
    """The right operand takes the type of the left one."""
    if isinstance(y, Variable) and y.dtype != x.dtype:
        y = manipulation.cast(y, x.dtype)
    return y


def _as_float(x):
    return x if _dtype.is_float(x.dtype) else manipulation.cast(x, "float32")


def _operator(with_number, with_variable):
    """x <op> other. A float beside a variable of integers or bool makes it float32, an int beside bool int64."""
    def method(self, other):
        if math.is_number(other):
            self = math.promoted(self, other)
            return with_number(self, float(_dtype.constant(other, self.dtype)))
        if not isinstance(other, Variable):
            if other is None or isinstance(other, (str, dict)):
                return NotImplemented
            self, other = math.operands(self, other)
        return with_variable(self, _same_type(self, other))
    return method


def _constant(x, number):
    return creation.full([1], number, x.dtype)


_divide = _operator(lambda x, n: math.scale(x, 1.0 / n), math.divide)


def _reverse_divide(x, number):
    return math.scale(math.reciprocal(_as_float(x)), number)


def _compare(function, is_equality=None):
    def method(self, other):
        if other is None or isinstance(other, (str, dict, list, tuple)):
            return NotImplemented
        out = function(self, _same_type(self, other))
        if self.constant is not None and math.is_number(other):
            out.constant = getattr(numpy, function.__name__.replace("than", "").rstrip("_"))(self.constant, other)
        if is_equality is not None and isinstance(other, Variable):
            out._asks_identity = (self is other) == is_equality
        return out
    return method


def _plus(x, number):
    """A length of a shape stays one where nothing is added."""
    return x if number == 0 and x.dim_of is not None else math.scale(x, 1.0, number)


_OPERATORS = {
    "__add__": _operator(_plus, math.add),
    "__radd__": _operator(_plus, math.add),
    "__sub__": _operator(lambda x, n: math.scale(x, 1.0, -n), math.subtract),
    "__rsub__": _operator(lambda x, n: math.scale(x, -1.0, n), lambda x, y: math.subtract(y, x)),
    "__mul__": _operator(lambda x, n: math.scale(x, n, 0.0), math.multiply),
    "__rmul__": _operator(lambda x, n: math.scale(x, n, 0.0), math.multiply),
    "__truediv__": lambda self, other: _divide(_as_float(self), other),
    "__rtruediv__": _operator(_reverse_divide, lambda x, y: math.divide(y, x)),
    "__pow__": _operator(math.power, math.pow),
    "__rpow__": _operator(lambda x, n: math.pow(_constant(x, n), x), lambda x, y: math.pow(y, x)),
    "__mod__": _operator(lambda x, n: math.remainder(x, _constant(x, n)), math.remainder),
    "__rmod__": _operator(lambda x, n: math.remainder(_constant(x, n), x), lambda x, y: math.remainder(y, x)),
    "__floordiv__": _operator(lambda x, n: math.floor_divide(x, _constant(x, n)), math.floor_divide),
    "__rfloordiv__": _operator(lambda x, n: math.floor_divide(_constant(x, n), x),
                               lambda x, y: math.floor_divide(y, x)),
    "__matmul__": lambda self, other: math.matmul(self, other),
    "__neg__": lambda self: math.scale(math.promoted(self, 1), -1.0, 0.0),
    "__eq__": _compare(logic.equal, True),
    "__ne__": _compare(logic.not_equal, False),
    "__lt__": _compare(logic.less_than),
    "__le__": _compare(logic.less_equal),
    "__gt__": _compare(logic.greater_than),
    "__ge__": _compare(logic.greater_equal),
    "__and__": lambda self, other: logic.logical_and(self, other),
    "__or__": lambda self, other: logic.logical_or(self, other),
    "__xor__": lambda self, other: logic.logical_xor(self, other),
    "__invert__": lambda self: logic.logical_not(self),
    "__getitem__": manipulation.get_item,
    "__setitem__": set_item,
}

_METHODS = """abs add add_n argmax argmin argsort bmm cast ceil chunk clip concat cos cumsum dist divide dot equal
    equal_all exp expand expand_as broadcast_to flatten flip floor floor_divide floor_mod gather gather_nd greater_equal
    greater_than increment index_select isclose isfinite isinf isnan less_equal less_than log log10 log1p log2
    logical_and logical_not logical_or logical_xor logsumexp matmul max maximum mean min minimum mm mod multiply norm
    not_equal numel pow prod rank reciprocal remainder reshape roll round rsqrt scale scatter sign sin slice sort split
    sqrt square squeeze stack std subtract sum t tanh tile topk transpose unbind unsqueeze unstack var where tril
    triu zeros_like""".split()


def _patch():
    names = globals()
    for name in _METHODS:
        setattr(Variable, name, names[name])
    for name, method in _OPERATORS.items():
        setattr(Variable, name, method)
    Variable.__hash__ = object.__hash__
    Variable.astype = lambda self, dtype: manipulation.cast(self, dtype)
    Variable.detach = lambda self: _stopped(creation.assign(self))
    Variable.clone = lambda self: creation.assign(self)
    Variable.dim = lambda self: len(self.shape)
    Variable.T = property(lambda self: manipulation.transpose(self, list(range(len(self.shape)))[::-1]))
    Variable.__abs__ = Variable.abs


def _stopped(x):
    x.stop_gradient = True
    return x


_patch()

__getattr__ = _refuse.getter(__name__, {}, lazy=_refuse.moved(
    "paddle.fluid.layers", "create_tensor fill_constant create_array array_read array_write array_length"))
