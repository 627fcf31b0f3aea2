"""Mixed precision for one optimizer: the strategy amp of docs/strategy.md, without a DistributedStrategy."""
import contextlib

from paddle import _dtype, _graph, _refuse
from paddle._native import native
from paddle.distributed.fleet.optimizer import DistributedOptimizer
from paddle.distributed.fleet.strategy import DistributedStrategy

__all__ = ["decorate", "CustomOpLists", "AutoMixedPrecisionLists", "fp16_guard", "cast_model_to_fp16",
           "cast_parameters_to_fp16"]


class CustomOpLists:
    """Ops that compute in 16 bits (white) or in f32 (black), by their names here or in the original, and variables
    whose ops compute in f32. They are added to the lists of docs/strategy.md."""

    def __init__(self, custom_white_list=None, custom_black_list=None, custom_black_varnames=None):
        self.custom_white_list = _names(custom_white_list, "custom_white_list")
        self.custom_black_list = _names(custom_black_list, "custom_black_list")
        self.black_varnames = _names(custom_black_varnames, "custom_black_varnames")

    def settings(self):
        return {"custom_white_list": self.custom_white_list, "custom_black_list": self.custom_black_list,
                "custom_black_varnames": self.black_varnames}


AutoMixedPrecisionLists = CustomOpLists


def _names(values, what):
    if isinstance(values, str):
        raise TypeError(f"{what} is a list of names, not the text {values!r}")
    return sorted(getattr(v, "name", v) for v in values or ())


def _lists(amp_lists):
    if amp_lists is not None and not isinstance(amp_lists, CustomOpLists):
        raise TypeError(f"amp_lists must be paddle.static.amp.CustomOpLists, not {type(amp_lists).__name__}")
    return CustomOpLists() if amp_lists is None else amp_lists


class OptimizerWithMixedPrecision(DistributedOptimizer):
    """What decorate makes. minimize trains with one worker; fleet.distributed_optimizer takes it for several."""

    _alone = True

    def __init__(self, optimizer, settings):
        self._settings = settings
        super().__init__(optimizer, self.added_to(None))

    def added_to(self, strategy):
        """The strategy of a job, with amp as it is set here."""
        if strategy is not None and strategy.amp:
            raise native.InvalidArgumentError("amp is asked for twice: by decorate(optimizer) and by strategy.amp; leave one out")
        both = DistributedStrategy() if strategy is None else strategy.__deepcopy__({})
        both.amp, both.amp_configs = True, self._settings
        return both

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None):
        raise native.UnsupportedError("backward: the scale of the loss and the check of the gradients belong to one "
                                      "program; call minimize(loss)")

    def apply_gradients(self, params_grads):
        raise native.UnsupportedError("apply_gradients: call minimize(loss), which checks, unscales and applies gradients")

    apply_optimize = apply_gradients


def decorate(optimizer, amp_lists=None, init_loss_scaling=2**15, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2,
             incr_ratio=2.0, decr_ratio=0.8, use_dynamic_loss_scaling=True, use_pure_fp16=False, use_fp16_guard=None,
             use_bf16=False, *, dtype="bfloat16", level=None):
    """The optimizer, in mixed precision. `dtype` is the 16-bit type: "bfloat16", which computes and learns like float32
    with fewer digits, or "float16". `level`, of later versions: "O1", or "O2" for use_pure_fp16."""
    if level not in (None, "O1", "O2"):
        raise ValueError(f"decorate: level must be 'O1' or 'O2', not {level!r}")
    settings = dict(_lists(amp_lists).settings(), init_loss_scaling=float(init_loss_scaling),
                    incr_every_n_steps=int(incr_every_n_steps), decr_every_n_nan_or_inf=int(decr_every_n_nan_or_inf),
                    incr_ratio=float(incr_ratio), decr_ratio=float(decr_ratio),
                    use_dynamic_loss_scaling=bool(use_dynamic_loss_scaling),
                    use_pure_fp16=bool(use_pure_fp16) or level == "O2",
                    dtype="bfloat16" if use_bf16 else str(_dtype.convert(dtype)))
    if use_fp16_guard is not None:
        settings["use_fp16_guard"] = bool(use_fp16_guard)
    return OptimizerWithMixedPrecision(optimizer, settings)


@contextlib.contextmanager
def fp16_guard():
    """Ops that are added inside compute in 16 bits where use_pure_fp16 and use_fp16_guard ask for it."""
    program = _graph.default_main_program()
    before = program.ir.op_count()
    yield
    for op in program.ir.ops()[before:]:
        program.fp16_variables.update(name for names in op["outputs"].values() for name in names)


def cast_model_to_fp16(program, amp_lists=None, use_fp16_guard=True):
    """Ops of a program without backward part compute in 16 bits, but for those of the black list. Parameters stay
    float32 and are rounded as they are read, so the set of those that are to be converted, which is returned, is empty."""
    lists = _lists(amp_lists)
    guarded = program.fp16_variables if use_fp16_guard else ()
    native.cast_to_half(program.ir, "bfloat16", lists.custom_white_list, lists.custom_black_list, lists.black_varnames,
                        sorted(guarded))
    return set()


def cast_parameters_to_fp16(place, program, scope=None, to_fp16_var_names=None):
    """Nothing to do: see cast_model_to_fp16."""


__getattr__ = _refuse.getter(__name__, {"GradScaler": "decorate", "debugging": "FLEETX_DUMP"},
                             lazy={"bf16": "paddle.static.amp.bf16"})
