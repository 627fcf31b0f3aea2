"""Learning rates that change with the step."""


def linear_warmup_decay(learning_rate, warmup_steps, num_train_steps):
    """From 0 to `learning_rate` in `warmup_steps`, then in a straight line to 0 at `num_train_steps`."""
    import paddle
    if not 0 <= warmup_steps < num_train_steps:
        raise ValueError(f"linear_warmup_decay: warmup_steps is {warmup_steps}, must be below num_train_steps "
                         f"({num_train_steps}) and not negative")

    def factor(step):
        if step < warmup_steps:
            return step / warmup_steps
        return max(0.0, (num_train_steps - step) / num_train_steps)

    return paddle.optimizer.lr.LambdaDecay(learning_rate, factor)
