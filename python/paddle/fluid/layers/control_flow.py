"""Switch, as schedules of learning rates use it: what a case assigns holds where its condition is the first true one.
The ops of all cases run; only assignments depend on conditions."""
import contextlib

from paddle import _refuse
from paddle.fluid import layers as _layers
from paddle.tensor import creation, logic, manipulation
from paddle.tensor.logic import equal, greater_equal, greater_than, less_equal, less_than, not_equal  # noqa: F401
from paddle.tensor.math import increment  # noqa: F401


class Switch:
    def __init__(self, name=None):
        self._taken = None  # was an earlier case true?

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    @contextlib.contextmanager
    def _when(self, condition):
        with creation.assign_only_where(condition):
            yield

    @contextlib.contextmanager
    def case(self, condition):
        first = condition
        if self._taken is not None:
            first = logic.logical_and(condition, logic.logical_not(self._taken))
        with self._when(first):
            yield
        self._taken = condition if self._taken is None else logic.logical_or(self._taken, condition)

    @contextlib.contextmanager
    def default(self):
        if self._taken is None:
            raise ValueError("Switch.default must follow a case")
        with self._when(logic.logical_not(self._taken)):
            yield


__getattr__ = _refuse.getter(__name__, _layers._REFUSED)
