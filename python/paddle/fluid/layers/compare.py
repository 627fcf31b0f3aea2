"""Comparisons with the arguments of 1.x: `cond` is a variable that takes the result."""
from paddle.tensor import creation, logic


def _comparison(name):
    function = getattr(logic, name)

    def layer(x, y, cond=None, name=None):
        made = function(x, y, name)
        return made if cond is None else creation.assign(made, cond)
    layer.__name__, layer.__doc__ = name, function.__doc__
    return layer


less_equal, greater_than, greater_equal, equal, not_equal = [
    _comparison(name) for name in ("less_equal", "greater_than", "greater_equal", "equal", "not_equal")]


def less_than(x, y, force_cpu=None, cond=None, name=None):
    made = logic.less_than(x, y, name)
    return made if cond is None else creation.assign(made, cond)
