"""Averages of parameters over steps: ExponentialMovingAverage, ModelAverage, and Lookahead, which trains by one. Their
ops are part of the update: a program that is cloned for tests has none of them."""
import contextlib

from paddle import _graph
from paddle._native import native
from paddle.tensor import creation, logic, manipulation, math
from paddle.utils import unique_name


def _state(like, suffix, value=0.0):
    """f32 state of a parameter, or one number where `like` is None."""
    name = unique_name.generate(suffix if like is None else f"{like.name}_{suffix}")
    variable = creation.create_global_var([1] if like is None else like.shape, value, "float32", True, name=name)
    variable.stop_gradient = True
    return variable


def _trained(program):
    parameters = [p for p in program.all_parameters() if not p.stop_gradient]
    if not parameters:
        raise native.InvalidArgumentError("the program has no trainable parameter to average")
    return parameters


class _Applied:
    """Averages in the place of the parameters, for a while."""

    def __init__(self):
        self._kept = {}  # name -> value of the training

    @contextlib.contextmanager
    def apply(self, executor, need_restore=True):
        """Inside, the parameters of the scope are the averages; need_restore=False leaves them so."""
        from paddle._executor import global_scope
        scope = global_scope()
        if self._kept:
            raise native.InvalidArgumentError(f"{type(self).__name__}.apply: averages are applied already; call restore() first")
        for name, average in self._averages(scope).items():
            tensor = scope.find_var(name).get_tensor()
            self._kept[name] = tensor.numpy()
            tensor.set(average)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor):
        """The parameters of the training come back."""
        from paddle._executor import global_scope
        for name, value in self._kept.items():
            global_scope().find_var(name).get_tensor().set(value)
        self._kept = {}

    @staticmethod
    def _value(scope, variable):
        found = scope.find_var(variable.name)
        if found is None:
            raise native.InvalidArgumentError(f"'{variable.name}' has no value yet: run the startup program first")
        return found.get_tensor().numpy().astype("float64")


class ExponentialMovingAverage(_Applied):
    """ema = decay * ema + (1 - decay) * parameter in each step, without the bias of its start at 0. With `thres_steps`,
    a variable with the number of steps, decay is min(decay, (1 + steps) / (10 + steps)). Call update() after
    minimize()."""

    def __init__(self, decay=0.999, thres_steps=None, name=None):
        super().__init__()
        if not 0 <= decay < 1:
            raise ValueError(f"ExponentialMovingAverage: decay must be in [0, 1), got {decay}")
        self._decay, self._steps = float(decay), thres_steps
        self._name = name or "ema"
        self._sums, self._left = {}, None

    def update(self):
        program = _graph.default_main_program()
        if self._sums:
            raise native.InvalidArgumentError("ExponentialMovingAverage.update() adds its ops once")
        with program.update_ops():
            # What is left of the first 0: the product of all decays.
            self._left = _state(None, f"{self._name}_bias", 1.0)
            decay = self._decay_of_step()
            creation.assign(math.multiply(self._left, decay), self._left)
            for p in _trained(program):
                ema = self._sums[p.name] = _state(p, self._name)
                kept = math.multiply(math.subtract(ema, p), decay)
                creation.assign(math.add(kept, p), ema)

    def _decay_of_step(self):
        decay = creation.full([1], self._decay, "float32")
        if self._steps is None:
            return decay
        steps = manipulation.cast(self._steps, "float32")
        return math.minimum(decay, math.divide(math.scale(steps, 1.0, 1.0), math.scale(steps, 1.0, 10.0)))

    def _averages(self, scope):
        if not self._sums:
            raise native.InvalidArgumentError("ExponentialMovingAverage: call update() while the program is built")
        weight = 1.0 - self._value(scope, self._left)
        if weight == 0:
            raise native.InvalidArgumentError("ExponentialMovingAverage.apply: no step was trained yet")
        return {name: self._value(scope, ema) / weight for name, ema in self._sums.items()}


class ModelAverage(_Applied):
    """The mean of the parameters over a window of the last steps: as long as average_window_rate of all steps, at least
    min_average_window, at most max_average_window of them. Made after minimize()."""

    def __init__(self, average_window_rate, min_average_window=10000, max_average_window=10000, regularization=None,
                 name=None, parameters=None):
        super().__init__()
        if regularization is not None:
            raise native.UnsupportedError("ModelAverage: regularization belongs to the optimizer")
        program = _graph.default_main_program()
        chosen = _graph.as_list(parameters) or _trained(program)
        chosen = [p for p in chosen if getattr(p.attr, "do_model_average", True)]
        with program.update_ops():
            self._count = _state(None, "model_average_count")  # steps in the sum
            self._old_count = _state(None, "model_average_old_count")  # and in that of the window before
            steps = _state(None, "model_average_steps")
            creation.assign(math.scale(steps, 1.0, 1.0), steps)
            count = math.scale(self._count, 1.0, 1.0)
            window = math.minimum(creation.full([1], float(max_average_window), "float32"),
                                  math.scale(steps, float(average_window_rate)))
            least = creation.full([1], float(min_average_window), "float32")
            full = logic.logical_and(logic.greater_equal(count, least), logic.greater_equal(count, window))
            self._sums = [(p.name, *self._sum(p, full)) for p in chosen]
            self._move(full, count, self._count, self._old_count)

    @staticmethod
    def _move(full, value, now, before):
        """A full window becomes the one before, and a new one begins."""
        creation.assign(manipulation.where(full, value, before), before)
        creation.assign(manipulation.where(full, creation.zeros_like(value), value), now)

    def _sum(self, parameter, full):
        now, before = _state(parameter, "sum"), _state(parameter, "old_sum")
        self._move(full, math.add(now, parameter), now, before)
        return now, before

    def _averages(self, scope):
        count = self._value(scope, self._count) + self._value(scope, self._old_count)
        if count == 0:
            raise native.InvalidArgumentError("ModelAverage.apply: no step was trained yet")
        return {name: (self._value(scope, now) + self._value(scope, before)) / count for name, now, before in self._sums}


class Lookahead:
    """Every k steps: slow += alpha * (parameter - slow), and training goes on from there. `inner_optimizer` makes the
    steps."""

    def __init__(self, inner_optimizer, alpha=0.5, k=5, name=None):
        if not hasattr(inner_optimizer, "minimize"):
            raise TypeError(f"Lookahead takes an optimizer, not {type(inner_optimizer).__name__}")
        if not 0 <= alpha <= 1:
            raise ValueError(f"Lookahead: alpha must be in [0, 1], got {alpha}")
        if not isinstance(k, int) or k < 1:
            raise ValueError(f"Lookahead: k must be a whole number of at least 1, got {k!r}")
        self.inner_optimizer, self.alpha, self.k = inner_optimizer, float(alpha), k

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        result = self.inner_optimizer.minimize(loss, startup_program, parameters, no_grad_set)
        program = loss.program
        startup = program._startup if program._startup is not None else _graph.default_startup_program()
        with _graph.program_guard(program, startup), program.update_ops():
            count = _state(None, "lookahead_step")
            creation.assign(math.scale(count, 1.0, 1.0), count)
            now = logic.equal(math.remainder(count, creation.full([1], float(self.k), "float32")),
                              creation.full([1], 0.0, "float32"))
            pairs = [(p, _state(p, "slow")) for p, _ in result[1]]
            for p, slow in pairs:
                moved = math.add(slow, math.scale(math.subtract(p, slow), self.alpha))
                creation.assign(manipulation.where(now, moved, slow), slow)
                creation.assign(manipulation.where(now, moved, p), p)
        with _graph.program_guard(startup, startup):
            for p, slow in pairs:
                creation.assign(startup._variable(p.name), startup._variable(slow.name))
        return result

    def __getattr__(self, name):
        if name in ("options", "added_to", "inner_optimizer"):  # by these fleet knows what it can spread over workers
            raise AttributeError(name)
        return getattr(self.inner_optimizer, name)
