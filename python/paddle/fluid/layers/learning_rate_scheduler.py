"""Learning rates computed in the program from its step counter."""
from paddle import _graph
from paddle._graph import Variable
from paddle._native import native, user_line

__all__ = ["exponential_decay", "natural_exp_decay", "inverse_time_decay", "polynomial_decay", "piecewise_decay",
           "noam_decay", "cosine_decay", "linear_lr_warmup"]


def _schedule(kind, **options):
    program = _graph.default_main_program()
    return program._variable(native.schedule(program.builder(), kind, options, *user_line()))


def exponential_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    return _schedule("exponential", lr=learning_rate, steps=decay_steps, rate=decay_rate, staircase=bool(staircase))


def natural_exp_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    return _schedule("natural_exp", lr=learning_rate, steps=decay_steps, rate=decay_rate, staircase=bool(staircase))


def inverse_time_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    return _schedule("inverse_time", lr=learning_rate, steps=decay_steps, rate=decay_rate, staircase=bool(staircase))


def polynomial_decay(learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False):
    return _schedule("polynomial", lr=learning_rate, steps=decay_steps, end=end_learning_rate, power=power,
                     cycle=bool(cycle))


def piecewise_decay(boundaries, values):
    if len(values) - len(boundaries) != 1:
        raise ValueError(f"piecewise_decay: {len(boundaries)} boundaries need {len(boundaries) + 1} values")
    return _schedule("piecewise", boundaries=[int(b) for b in boundaries], values=[float(v) for v in values])


def noam_decay(d_model, warmup_steps, learning_rate=1.0):
    return _schedule("noam", width=d_model, warm_up_steps=warmup_steps, lr=learning_rate)


def cosine_decay(learning_rate, step_each_epoch, epochs):
    return _schedule("cosine", lr=learning_rate, steps_per_epoch=step_each_epoch, epochs=epochs)


def linear_lr_warmup(learning_rate, warmup_steps, start_lr, end_lr):
    after = learning_rate.name if isinstance(learning_rate, Variable) else float(learning_rate)
    return _schedule("warm_up", after=after, steps=warmup_steps, start=start_lr, end=end_lr)


def _decay_step_counter(begin=0):
    """The number of steps done, float32 [1]."""
    from paddle.tensor import manipulation, math
    program = _graph.default_main_program()
    step = program._variable(program.builder().step())
    done = math.add_number(manipulation.cast(step, "float32"), float(begin))
    program.builder().count_step()
    return done
