"""Optimizers: minimize(loss) appends the backward part and the updates to the program of the loss."""
from paddle import _graph, _loose, _refuse
from paddle._graph import Variable, as_list
from paddle._native import native, user_line
from paddle.optimizer import _declared, lr
from paddle.regularizer import L2Decay, WeightDecayRegularizer
from paddle.tensor import creation

__all__ = ["Optimizer", "lr"]


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
        self._learning_rate_map = {}  # program -> variable; a script may put one of its own there
        if isinstance(learning_rate, Variable):
            self._learning_rate_map[learning_rate.program] = learning_rate
        self._program = None
        self._own_options = {}
        self._multi_precision = False  # has it f32 parameters where those of the network have 16 bits?
        self._decay_filter, self._filter_keeps_names = None, False

    # ---- what the C++ optimizer is told ----
    def options(self):
        rate = self._learning_rate_map.get(self._program, self._learning_rate)
        if isinstance(rate, lr.LRScheduler):
            rate = rate()
        out = {"kind": self.kind, "lr": rate.name if isinstance(rate, Variable) else float(rate)}
        if self.regularization is not None:
            out.update(self.regularization.options())
        if self._grad_clip is not None:
            out["clip"] = self._grad_clip.options()
        out.update(self._own_options)
        return out

    # ---- the three steps ----
    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """Returns (operators, [(parameter, gradient), ...])."""
        _check_loss(loss)
        creation.refuse_in_a_side(f"{type(self).__name__}.minimize")
        before = loss.program.before_training(self, loss, parameters, no_grad_set, startup_program)
        pairs = self.backward(loss, startup_program, parameters, no_grad_set)
        self.apply_gradients(pairs)
        loss.program.note_training(before)
        return [], pairs

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None):
        _check_loss(loss)
        if callbacks is not None:
            raise native.UnsupportedError("backward: callbacks are not called; change the program after backward instead")
        program = loss.program
        _graph.refuse_gradients(program, "backward")
        if startup_program is not None:
            program._startup = startup_program
        _loose.loosen(program)
        chosen = parameters if parameters is not None else self._parameters
        names = [p if isinstance(p, str) else p.name for p in as_list(chosen)]
        stop = {v if isinstance(v, str) else v.name for v in (no_grad_set or ())}
        pairs = native.backward(program.builder(), loss.name, names, stop, *user_line())
        pairs = [(program._variable(p), program._variable(g)) for p, g in pairs]
        program.note_gradients(pairs)
        return pairs

    def apply_gradients(self, params_grads):
        creation.refuse_in_a_side(f"{type(self).__name__}.apply_gradients")
        pairs = [(p.name, g.name) for p, g in params_grads if g is not None]
        if not pairs:
            raise native.InvalidArgumentError(f"{type(self).__name__}: there is no gradient to apply")
        program = params_grads[0][0].program
        self.prepare([p for p, _ in params_grads])
        self.bind(program, native.apply_gradients(program.builder(), self.options(), pairs, *user_line()))
        return []

    def prepare(self, parameters):
        """Called with the parameters that will be updated, before options()."""
        self._program = parameters[0].program
        self._follow_gradient_clip(self._program, parameters)
        decay_filter = self._decay_filter
        if decay_filter is not None:
            self._own_options["without_decay"] = [
                p.name for p in parameters if (not decay_filter(p.name) if self._filter_keeps_names else decay_filter(p))]

    def _follow_gradient_clip(self, program, parameters):
        """What fluid.clip.set_gradient_clip has said, or the ParamAttr of 1.x, for an optimizer without a grad_clip of its
        own."""
        told = program.gradient_clip or _clip_of_attributes(parameters)
        if self._grad_clip is not None or told is None:
            return
        self._grad_clip, names = told
        for p in parameters:
            if names is not None and p.name not in names:
                program.ir.set_attr_of(p.name, "need_clip", False)

    def bind(self, program, lr_name):
        """The updates are in `program` now, with this learning rate."""
        self._program, self._lr_name = program, lr_name
        self._learning_rate_map[program] = program._variable(lr_name)
        self._follow_schedule(program, lr_name)

    def forget(self, program):
        """The updates are no longer in `program`."""
        rate = self._learning_rate_map.get(program)
        if rate is not None and not program.ir.has(rate.name):
            del self._learning_rate_map[program]
        self._program = self._lr_name = None

    def _follow_schedule(self, program, lr_name):
        pair = (self._learning_rate, lr_name)
        if isinstance(self._learning_rate, lr.LRScheduler) and pair not in program.lr_schedules:
            program.lr_schedules.append(pair)

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

    def _global_learning_rate(self, program=None):
        """The variable with the learning rate of a program. Before minimize it is made."""
        program = program if program is not None else self._program or _graph.default_main_program()
        if program not in self._learning_rate_map:
            from paddle.utils import unique_name
            name = unique_name.generate("learning_rate")
            program.builder().state(name, "float32", [1], float(self.get_lr()))
            self._learning_rate_map[program] = program._variable(name)
            self._lr_name = name
            self._follow_schedule(program, name)
        return self._learning_rate_map[program]

    _create_global_learning_rate = _global_learning_rate

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


def _clip_of_attributes(parameters):
    """(clip, names of the parameters whose ParamAttr has it), or None."""
    clips = {p.name: p.gradient_clip_attr for p in parameters if p.gradient_clip_attr is not None}
    if len({clip.options() for clip in clips.values()}) > 1:
        raise native.UnsupportedError("parameters have different gradient_clip in their ParamAttr; give all the same, or the "
                                      "optimizer a grad_clip")
    return (next(iter(clips.values())), set(clips)) if clips else None


def _check_loss(loss):
    if not isinstance(loss, Variable):
        raise TypeError(f"the loss must be a variable of a program, not {type(loss).__name__}")


# One class for each optimizer that is declared in fleetx/optimizers/.
for _definition in _declared.definitions():
    if _definition["python"]["name"]:
        globals()[_definition["python"]["name"]] = _declared.make_class(_definition, "python", __name__, (Optimizer,))
        __all__.append(_definition["python"]["name"])

__getattr__ = _refuse.getter(__name__, {"Rprop": "SGD", "LBFGS": "SGD", "ASGD": "SGD", "NAdam": "Adam", "RAdam": "Adam", "Dpsgd": "SGD",
                                        "ExponentialMovingAverage": "paddle.static.ExponentialMovingAverage"})
