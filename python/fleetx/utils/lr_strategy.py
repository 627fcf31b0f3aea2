"""Learning rates that change with the step."""
from paddle import static
from paddle._native import native, user_line


def linear_warmup_decay(learning_rate: float, warmup_steps: int, num_train_steps: int) -> static.Variable:
    """From 0 to `learning_rate` in `warmup_steps`, then in a straight line to 0 at `num_train_steps`. A variable of the
    default main program, which counts its steps itself."""
    if not 0 <= warmup_steps < num_train_steps:
        raise native.InvalidArgumentError(f"linear_warmup_decay: warmup_steps is {warmup_steps}, must be below "
                                          f"num_train_steps ({num_train_steps}) and not negative")
    program, at = static.default_main_program(), user_line()
    decay = {"lr": learning_rate, "steps": num_train_steps, "end": 0.0, "power": 1.0, "cycle": False}
    rate = native.schedule(program.builder(), "polynomial", decay, *at)
    if warmup_steps > 0:
        rate = native.schedule(program.builder(), "warm_up",
                               {"after": rate, "steps": warmup_steps, "start": 0.0, "end": learning_rate}, *at)
    return program.global_block().var(rate)
