"""An optimizer whose program is changed for the workers of a job."""
from paddle import _loose
from paddle._graph import Variable, as_list, default_startup_program
from paddle._native import native, user_line
from paddle.tensor import creation


class DistributedOptimizer:
    """`servers`: how the servers of the job are used, where a DistributeTranspilerConfig says it (see
    fluid.transpiler); without it strategy.a_sync does."""

    _alone = False  # is the program that of one worker, whatever job this process is part of?

    def __init__(self, optimizer, strategy=None, servers=None):
        self._given = optimizer
        # What brings a strategy with it: paddle.static.amp.decorate, DGCMomentumOptimizer, one around the other.
        while hasattr(optimizer, "added_to"):
            outer, strategy = optimizer, optimizer.added_to(strategy)
            if not isinstance(outer, DistributedOptimizer):
                break
            optimizer = outer._given
        if not hasattr(optimizer, "options"):
            raise TypeError(f"distributed_optimizer takes an optimizer, not {type(optimizer).__name__}")
        self.inner_opt = self.user_defined_optimizer = optimizer
        self.user_defined_strategy = strategy
        self._servers = servers
        self.applied = []  # strategies, after minimize
        self.strategy_text = ""  # the strategy that minimize used, as text; of auto, its choice
        self.main_program = self.startup_program = None  # that minimize changed

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, parameters=None):
        """Backward, updates, then the strategies. Returns (operators, [(parameter, gradient), ...])."""
        if isinstance(loss, (list, tuple)):
            loss = loss[0]
        if not isinstance(loss, Variable):
            raise TypeError(f"the loss must be a variable of a program, not {type(loss).__name__}")
        creation.refuse_in_a_side("minimize")
        optimizer, program = self.inner_opt, loss.program
        if startup_program is not None:
            program._startup = startup_program[0] if isinstance(startup_program, (list, tuple)) else startup_program
        chosen = parameter_list if parameter_list is not None else parameters
        chosen = as_list(chosen if chosen is not None else optimizer._parameters)
        names = [p if isinstance(p, str) else p.name for p in chosen]
        stop = {v if isinstance(v, str) else v.name for v in (no_grad_set or ())}
        optimizer.prepare([program._variable(n) for n in names] or program.all_parameters())
        _loose.loosen(program)
        strategy = self._strategy_for(program)
        pairs, rate, self.applied, self.strategy_text = native.fleet.minimize(
            program.builder(), optimizer.options(), None if strategy is None else strategy.native, self._alone, loss.name,
            names, stop, self._servers, *user_line())
        optimizer.bind(program, rate)
        if "pipeline" in self.applied:
            configs = strategy.pipeline_configs
            program.micro_batches = configs["micro_batch_size"], configs["accumulate_steps"]
        self.main_program = program
        self.startup_program = program._startup if program._startup is not None else default_startup_program()
        pairs = [(program._variable(p), program._variable(g)) for p, g in pairs]
        # A merged gradient is there once in k batches only: w@GRAD is that of the batch.
        program.note_gradients([(p, program._variable(g.name.split("@MERGED")[0])) for p, g in pairs])
        return [], pairs

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None):
        raise self._only_minimize("backward")

    def apply_gradients(self, params_grads):
        raise self._only_minimize("apply_gradients")

    def apply_optimize(self, loss, startup_program, params_grads):
        raise self._only_minimize("apply_optimize")

    def _only_minimize(self, name):
        return native.UnsupportedError(f"{type(self).__name__}.{name}: gradients that are applied without minimize are neither "
                                       "averaged nor changed by any strategy; call minimize(loss)")

    # ---- mixed precision ----
    def _strategy_for(self, program):
        """The strategy, with what amp is told by other calls: fp16_guard and an optimizer's multi_precision."""
        strategy = self.user_defined_strategy
        strategy = strategy if strategy is None else strategy.without_unused().in_hybrid_configs()
        if strategy is None or not strategy.amp or not strategy.amp_configs["use_pure_fp16"]:
            return strategy
        told = strategy.__deepcopy__({})
        if strategy.amp_configs["use_fp16_guard"]:
            told.amp_configs = {"fp16_guard_varnames": program.fp16_variables}
        if self.inner_opt._multi_precision:
            told.amp_configs = {"multi_precision": True}
        return told

    def amp_init(self, place, scope=None, test_program=None, use_fp16_test=False):
        """To be called after the startup program has run, which gives parameters the type that they are trained in.
        A program that was cloned for tests before minimize, and has float32 parameters, reads those of use_pure_fp16
        from now on. It computes in float32 whatever use_fp16_test says. Otherwise there is nothing to do."""
        self._check_amp("amp_init")
        if test_program is not None and self.main_program is not None:
            half = self.user_defined_strategy.amp_configs["dtype"]
            names = [p.name for p in self.main_program.all_parameters() if p.dtype == half]
            native.read_as_f32(test_program.ir, names, half)

    def get_loss_scaling(self):
        """The variable with the scale of the loss; fetch it to see its value."""
        self._check_amp("get_loss_scaling")
        if self.main_program is None:
            raise native.InvalidArgumentError("get_loss_scaling: call minimize(loss) first")
        return self.main_program._variable("loss_scaling_0")

    def _check_amp(self, who):
        if self.user_defined_strategy is None or not self.user_defined_strategy.amp:
            raise native.InvalidArgumentError(f"{who}: this optimizer trains in float32; set strategy.amp = True, or "
                                              "decorate it by paddle.static.amp.decorate")

    def __getattr__(self, name):
        return getattr(self.inner_opt, name)
