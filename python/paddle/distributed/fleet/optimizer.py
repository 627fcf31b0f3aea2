"""An optimizer whose program is changed for the workers of a job."""
from paddle._graph import Variable, as_list, default_startup_program
from paddle._native import native, user_line


class DistributedOptimizer:
    def __init__(self, optimizer, strategy=None):
        if not hasattr(optimizer, "options"):
            raise TypeError(f"distributed_optimizer takes an optimizer, not {type(optimizer).__name__}")
        self.inner_opt = self.user_defined_optimizer = optimizer
        self.user_defined_strategy = strategy
        self.applied = []  # strategies, after minimize
        self.main_program = self.startup_program = None  # that minimize changed

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, parameters=None):
        """Backward, updates, then the strategies. Returns (operators, [(parameter, gradient), ...])."""
        if isinstance(loss, (list, tuple)):
            loss = loss[0]
        if not isinstance(loss, Variable):
            raise TypeError(f"the loss must be a variable of a program, not {type(loss).__name__}")
        optimizer, program = self.inner_opt, loss.program
        if startup_program is not None:
            program._startup = startup_program[0] if isinstance(startup_program, (list, tuple)) else startup_program
        chosen = parameter_list if parameter_list is not None else parameters
        chosen = as_list(chosen if chosen is not None else optimizer._parameters)
        names = [p if isinstance(p, str) else p.name for p in chosen]
        stop = {v if isinstance(v, str) else v.name for v in (no_grad_set or ())}
        optimizer.prepare([program._variable(n) for n in names] or program.all_parameters())
        pairs, rate, self.applied = native.fleet.minimize(
            program.builder(), optimizer.options(),
            None if self.user_defined_strategy is None else self.user_defined_strategy.native, loss.name, names, stop,
            *user_line())
        optimizer.bind(program, rate)
        self.main_program = program
        self.startup_program = program._startup if program._startup is not None else default_startup_program()
        return [], [(program._variable(p), program._variable(g)) for p, g in pairs]

    def __getattr__(self, name):
        return getattr(self.inner_opt, name)
