"""Optimizers: minimize(loss) appends the backward part and the updates to the program of the loss."""
from paddle import _graph, _refuse
from paddle._graph import Variable, as_list
from paddle._native import native, user_line
from paddle.optimizer import lr
from paddle.regularizer import L2Decay, WeightDecayRegularizer

__all__ = ["Optimizer", "SGD", "Momentum", "Adam", "AdamW", "Adagrad", "RMSProp", "Adadelta", "Adamax", "Lamb",
           "Ftrl", "LarsMomentum", "lr"]


class Optimizer:
    """`learning_rate`: a number, a schedule of paddle.optimizer.lr, or a variable of the program."""

    kind = None

    def __init__(self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None, name=None):
        if not isinstance(learning_rate, (int, float, lr.LRScheduler, Variable)):
            raise TypeError(f"{type(self).__name__}: learning_rate must be a number, an LRScheduler or a variable, "
                            f"not {type(learning_rate).__name__}")
        if isinstance(weight_decay, (int, float)) and not isinstance(weight_decay, bool):
            weight_decay = L2Decay(weight_decay)
        if weight_decay is not None and not isinstance(weight_decay, WeightDecayRegularizer):
            raise TypeError(f"{type(self).__name__}: weight_decay must be a number, L1Decay or L2Decay, "
                            f"not {type(weight_decay).__name__}")
        self._learning_rate = learning_rate
        self._parameters = None if parameters is None else as_list(parameters)
        self.regularization = weight_decay
        self._grad_clip = grad_clip
        self._name = name
        self._lr_name = None
        self._program = None

    # ---- what the C++ optimizer is told ----
    def _own(self):
        return {}

    def options(self):
        rate = self._learning_rate
        if isinstance(rate, lr.LRScheduler):
            rate = rate()
        out = {"kind": self.kind, "lr": rate.name if isinstance(rate, Variable) else float(rate)}
        if self.regularization is not None:
            out.update(self.regularization.options())
        if self._grad_clip is not None:
            out["clip"] = self._grad_clip.options()
        out.update(self._own())
        return out

    # ---- the three steps ----
    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """Returns (operators, [(parameter, gradient), ...])."""
        _check_loss(loss)
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        self.apply_gradients(pairs)
        return [], pairs

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None):
        _check_loss(loss)
        program = loss.program
        if startup_program is not None:
            program._startup = startup_program
        chosen = parameters if parameters is not None else self._parameters
        names = [p if isinstance(p, str) else p.name for p in as_list(chosen)]
        stop = {v if isinstance(v, str) else v.name for v in (no_grad_set or ())}
        pairs = native.backward(program.builder(), loss.name, names, stop, *user_line())
        return [(program._variable(p), program._variable(g)) for p, g in pairs]

    def apply_gradients(self, params_grads):
        pairs = [(p.name, g.name) for p, g in params_grads if g is not None]
        if not pairs:
            raise native.InvalidArgumentError(f"{type(self).__name__}: there is no gradient to apply")
        program = params_grads[0][0].program
        self.prepare([p for p, _ in params_grads])
        self.bind(program, native.apply_gradients(program.builder(), self.options(), pairs, *user_line()))
        return []

    def prepare(self, parameters):
        """Called with the parameters that will be updated, before options()."""

    def bind(self, program, lr_name):
        """The updates are in `program` now, with this learning rate."""
        self._program, self._lr_name = program, lr_name
        if isinstance(self._learning_rate, lr.LRScheduler):
            program.lr_schedules.append((self._learning_rate, lr_name))

    def apply_optimize(self, loss, startup_program, params_grads):
        return self.apply_gradients(params_grads)

    # ---- learning rate ----
    def get_lr(self):
        if isinstance(self._learning_rate, lr.LRScheduler):
            return self._learning_rate()
        if isinstance(self._learning_rate, Variable):
            raise native.UnsupportedError("get_lr: the learning rate is computed in the program; fetch it")
        return float(self._learning_rate)

    def set_lr(self, value, scope=None):
        if not isinstance(self._learning_rate, (int, float)):
            raise RuntimeError("set_lr: the learning rate is a schedule; change the schedule")
        self._learning_rate = float(value)
        if self._lr_name is not None:
            from paddle._executor import global_scope
            scope = scope or global_scope()
            if scope.find_var(self._lr_name) is not None:
                scope.find_var(self._lr_name).get_tensor().set([float(value)])

    def current_step_lr(self):
        return self.get_lr()

    def _global_learning_rate(self):
        return None if self._lr_name is None else self._program._variable(self._lr_name)

    def state_dict(self):
        """Everything that the optimizer keeps from step to step, by name."""
        return {} if self._program is None else self._program.state_dict("opt")

    def set_state_dict(self, state_dict):
        if self._program is not None:
            self._program.set_state_dict(state_dict)

    set_dict = set_state_dict

    def step(self):
        raise native.UnsupportedError(
            f"{type(self).__name__}.step(): FleetX runs static programs; call minimize(loss) once, then Executor.run")

    def clear_grad(self):
        raise native.UnsupportedError(f"{type(self).__name__}.clear_grad(): gradients of a static program need no clearing")

    clear_gradients = clear_grad


def _check_loss(loss):
    if not isinstance(loss, Variable):
        raise TypeError(f"the loss must be a variable of a program, not {type(loss).__name__}")


class SGD(Optimizer):
    kind = "sgd"


class Momentum(Optimizer):
    kind = "momentum"

    def __init__(self, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None,
                 grad_clip=None, name=None, **ignored):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._momentum, self._nesterov = momentum, use_nesterov

    def _own(self):
        return {"mu": float(self._momentum), "nesterov": bool(self._nesterov)}


class Adam(Optimizer):
    kind = "adam"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=None,
                 grad_clip=None, lazy_mode=False, name=None, **ignored):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        for what, value in (("beta1", beta1), ("beta2", beta2)):
            if isinstance(value, Variable):
                raise native.UnsupportedError(f"{type(self).__name__}: {what} must be a number")
            if not 0 <= value < 1:
                raise ValueError(f"{type(self).__name__}: {what} must be in [0, 1), got {value}")
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon

    def _own(self):
        return {"beta1": float(self._beta1), "beta2": float(self._beta2), "epsilon": float(self._epsilon)}


class Adamax(Adam):
    """Adam with the largest gradient of late in the place of their mean square."""

    kind = "adamax"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=None,
                 grad_clip=None, name=None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, weight_decay, grad_clip, name=name)


class AdamW(Adam):
    """Decay is taken from the parameter directly, not through the gradient."""
    kind = "adamw"

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None, weight_decay=0.01,
                 apply_decay_param_fun=None, grad_clip=None, lazy_mode=False, name=None, **ignored):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, lazy_mode, name)
        self._decay = weight_decay.coeff if isinstance(weight_decay, WeightDecayRegularizer) else float(weight_decay)
        self._decays = apply_decay_param_fun
        self._without_decay = set()

    def prepare(self, parameters):
        if self._decays is not None:
            self._without_decay = {p.name for p in parameters if not self._decays(p.name)}

    def _own(self):
        return dict(super()._own(), decay=self._decay, without_decay=self._without_decay)


class Adagrad(Optimizer):
    kind = "adagrad"

    def __init__(self, learning_rate, epsilon=1e-6, parameters=None, weight_decay=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._initial = epsilon, initial_accumulator_value

    def _own(self):
        return {"epsilon": float(self._epsilon), "initial": float(self._initial)}


class RMSProp(Optimizer):
    kind = "rmsprop"

    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._rho, self._epsilon, self._momentum, self._centered = rho, epsilon, momentum, centered

    def _own(self):
        return {"rho": float(self._rho), "epsilon": float(self._epsilon), "momentum": float(self._momentum),
                "centered": bool(self._centered)}


class Adadelta(Optimizer):
    kind = "adadelta"

    def __init__(self, learning_rate=0.001, epsilon=1e-6, rho=0.95, parameters=None, weight_decay=None, grad_clip=None,
                 name=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._rho = epsilon, rho

    def _own(self):
        return {"epsilon": float(self._epsilon), "rho": float(self._rho)}


class Ftrl(Optimizer):
    kind = "ftrl"

    def __init__(self, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameters=None, weight_decay=None, grad_clip=None,
                 name=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._l1, self._l2, self._lr_power = l1, l2, lr_power

    def _own(self):
        return {"shrink_l1": float(self._l1), "shrink_l2": float(self._l2), "lr_power": float(self._lr_power)}


class LarsMomentum(Momentum):
    kind = "lars_momentum"

    def __init__(self, learning_rate, momentum=0.9, lars_coeff=0.001, lars_weight_decay=0.0005, parameters=None,
                 weight_decay=None, grad_clip=None, name=None, exclude_from_weight_decay=None, epsilon=0.0, **ignored):
        super().__init__(learning_rate, momentum, parameters, False, weight_decay, grad_clip, name)
        self._coeff, self._lars_decay, self._epsilon = lars_coeff, lars_weight_decay, epsilon
        self._exclude = list(exclude_from_weight_decay or [])

    def _own(self):
        return {"mu": float(self._momentum), "lars_coeff": float(self._coeff),
                "lars_weight_decay": float(self._lars_decay), "epsilon": float(self._epsilon),
                "exclude": self._exclude}


class Lamb(Adam):
    kind = "lamb"

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
                 parameters=None, grad_clip=None, exclude_from_weight_decay_fn=None, name=None, **ignored):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip, False, name)
        self._decay, self._excluded, self._exclude = lamb_weight_decay, exclude_from_weight_decay_fn, []

    def prepare(self, parameters):
        if self._excluded is not None:
            self._exclude = [p.name for p in parameters if self._excluded(p)]

    def _own(self):
        return dict(super()._own(), weight_decay=float(self._decay), exclude=self._exclude)


__getattr__ = _refuse.getter(__name__, {"Rprop": "SGD", "LBFGS": "SGD", "ASGD": "SGD", "NAdam": "Adam", "RAdam": "Adam",
                                        "Dpsgd": "SGD", "DecayedAdagrad": "Adagrad", "ExponentialMovingAverage": "SGD"})
