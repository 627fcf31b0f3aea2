"""Choices inside a program: cond, case, switch_case, and Switch as schedules of learning rates use it. The ops of all
sides run; what they return or assign is chosen by the conditions when the program runs."""
import contextlib

from paddle import _refuse
from paddle._graph import Variable, as_list
from paddle.fluid import layers as _layers
from paddle.tensor import creation, logic, manipulation
from paddle.fluid.layers.compare import equal, greater_equal, greater_than, less_equal, less_than, not_equal  # noqa: F401
from paddle.fluid.layers.nn import increment  # noqa: F401
from paddle.fluid.layers.beams import While, array_length, array_read, array_write, create_array, while_loop  # noqa: F401
from paddle.fluid.layers.static_rnn import DynamicRNN, StaticRNN  # noqa: F401


class Switch:
    """What a case assigns holds where its condition is the first true one."""

    def __init__(self, name=None):
        self._taken = None  # was an earlier case true?

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    @contextlib.contextmanager
    def case(self, condition):
        first = condition
        if self._taken is not None:
            first = logic.logical_and(condition, logic.logical_not(self._taken))
        with creation.assign_only_where(first):
            yield
        self._taken = condition if self._taken is None else logic.logical_or(self._taken, condition)

    @contextlib.contextmanager
    def default(self):
        if self._taken is None:
            raise ValueError("Switch.default must follow a case")
        with creation.assign_only_where(logic.logical_not(self._taken)):
            yield


class IfElse:
    """Of each row the output of the side that its condition [rows, 1] chooses. Both sides compute all rows, so that a mean or
    batch norm over the rows inside a block is that of all of them."""

    def __init__(self, cond, name=None):
        if cond.dtype != "bool":
            raise TypeError(f"IfElse: the condition must be a variable of bool, got {cond.dtype}")
        self._cond, self._outputs, self._side = cond, {}, None

    @contextlib.contextmanager
    def _block(self, side):
        if self._side is not None:
            raise ValueError("IfElse: one block stands inside the other")
        self._side = side
        yield
        self._side = None

    def true_block(self):
        return self._block(True)

    def false_block(self):
        return self._block(False)

    def _check_inside(self, what):
        if self._side is None:
            raise ValueError(f"IfElse.{what} is called inside of true_block() or false_block()")

    def input(self, x):
        self._check_inside("input")
        return x

    def output(self, *outs):
        self._check_inside("output")
        self._outputs[self._side] = list(outs)

    def __call__(self):
        sides = [self._outputs.get(side, []) for side in (True, False)]
        if not sides[0] or len(sides[0]) != len(sides[1]):
            raise ValueError(f"IfElse: the true block has {len(sides[0])} outputs, the false block {len(sides[1])}; each needs the same")
        return [_choose("IfElse", self._of_rank(a), a, b) for a, b in zip(*sides)]

    def _of_rank(self, value):
        """The condition, with a dimension of one for each that a row of `value` has."""
        ones = len(value.shape) - len(self._cond.shape)
        return self._cond if ones == 0 else manipulation.reshape(self._cond, [-1] + [1] * (len(value.shape) - 1))


def _choose(what, condition, a, b):
    """a where the condition holds, else b: variables, numbers, or lists and dicts of them, of one form."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return type(a)(_choose(what, condition, x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {key: _choose(what, condition, a[key], b[key]) for key in a}
    if a is None and b is None:
        return None
    if any(v is None or isinstance(v, (list, tuple, dict)) for v in (a, b)):
        raise ValueError(f"{what}: all sides must return the same number of variables, got {a!r} and {b!r}")
    a, b = [v if isinstance(v, Variable) else creation.assign([v]) for v in (a, b)]
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        raise ValueError(f"{what}: all sides must return the same type and shape, got {a.dtype}{list(a.shape)} and "
                         f"{b.dtype}{list(b.shape)}")
    return manipulation.where(condition, a, b)


def _side(function, condition):
    if function is None:
        return None
    if not callable(function):
        raise TypeError(f"a side must be a function without arguments, not {type(function).__name__}")
    with creation.assign_only_where(condition):
        return function()


def _one(what, condition):
    """A condition is one truth value, and may stand inside of another."""
    if not isinstance(condition, Variable) or condition.size != 1 or condition.dtype != "bool":
        raise TypeError(f"{what}: the condition must be a variable of one bool, got {condition!r}")
    outer = creation.assignment_condition()
    return condition if outer is None else logic.logical_and(outer, condition)


def cond(pred, true_fn=None, false_fn=None, name=None):
    """What true_fn() returns where pred holds, else what false_fn() returns. Both are built, and both run."""
    taken = _one("cond", pred)
    other = _one("cond", logic.logical_not(pred))
    return _choose("cond", pred, _side(true_fn, taken), _side(false_fn, other))


def case(pred_fn_pairs, default=None, name=None):
    """The function of the first condition that holds; without a default the last one is the default."""
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise ValueError("case: pred_fn_pairs is empty")
    if default is None:
        default = pairs.pop()[1]
    if not pairs:
        return default()
    (pred, function), rest = pairs[0], pairs[1:]
    return cond(pred, function, (lambda: case(rest, default)) if rest else default)


def switch_case(branch_index, branch_fns, default=None, name=None):
    """The function whose number branch_index is; without a default the one with the highest number."""
    fns = dict(branch_fns.items() if isinstance(branch_fns, dict) else
               (f if isinstance(f, (list, tuple)) else (i, f) for i, f in enumerate(as_list(branch_fns))))
    if default is None:
        default = fns[max(fns)]
    pairs = [(logic.equal(branch_index, creation.full([1], number, branch_index.dtype)), function)
             for number, function in sorted(fns.items())]
    return case(pairs, default)


__getattr__ = _refuse.getter(__name__, _layers._REFUSED)
