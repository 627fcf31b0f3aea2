"""Loops whose number of steps each batch brings along. A program has no loops inside: one that was built with such a loop
has one step of it, and stands for a family of programs, one for each number of steps. Executor.run looks the numbers up in
what is fed and runs the program that has so many; each is made once, with its backward part and updates by the same
optimizer, under the same names, so that all share parameters and states."""
import copy

from paddle import _graph
from paddle._native import native
from paddle.utils import unique_name


class Loop:
    """steps: name of the variable with the number of steps. Of the step: its ops, each by an output; (variable, what takes
    its place in the next step); (concat behind it, what it reads of each step)."""

    def __init__(self, steps, ops, carried, collected, rounded):
        self.steps, self.ops, self.carried, self.collected = steps, ops, carried, collected
        self.rounded = rounded  # do further steps change nothing? Then programs serve for eight numbers of steps

        self.done, self.most = None, None

    def ends_at(self, done, most):
        """A loop whose number of steps is found by trying: it is enough when `done` is 1."""
        self.done, self.most = done, most

    def times(self, steps):
        if self.done is not None:
            return min(16, self.most)
        steps = max(1, int(steps))
        return -(-steps // 8) * 8 if self.rounded and steps > 8 else steps


class Family:
    """The programs that a program with loops stands for."""

    def __init__(self):
        self.loops = []
        self._version = None
        self._made, self._counters = {}, {}  # by numbers of steps: of all loops; of those before the one that is counted

    def __bool__(self):
        return bool(self.loops)

    def steps(self, program, run, feed):
        """How often each loop's step is done for what is fed. `run(ir, feed, names)` gives values. A loop may go over what
        one before it gave: that one has its steps when this one's are counted."""
        if self._version != program.ir.version:
            self._version, self._made, self._counters = program.ir.version, {}, {}
        times = ()
        for loop in self.loops:
            if times not in self._counters:
                self._counters[times] = self._repeated(program, times).prune([loop.steps])
            counter = self._counters[times]
            needed = {name: value for name, value in feed.items() if counter.has(name)}
            times += (loop.times(run(counter, needed, [loop.steps])[0].item()),)
        return times

    def more(self, times, done):
        """Numbers of steps to try next, where the values `done` of the loops that are tried say that more are needed;
        None: it was enough."""
        done = iter(done)
        new = tuple(min(2 * n, loop.most) if loop.done is not None and not next(done).item() else n
                    for loop, n in zip(self.loops, times))
        return new if new != times else None

    def questions(self):
        return [loop.done for loop in self.loops if loop.done is not None]

    def member(self, program, times):
        if times not in self._made:
            self._made[times] = self._make(program, times)
        return self._made[times]

    def _repeated(self, program, times):
        """The forward part, the first loops of it with so many steps."""
        told = program.trained_by
        if told is not None and program.ir.op_count() != told["ops"]:
            raise native.UnsupportedError("ops were added to a program with a loop after minimize(); add them before")
        ir = program.ir if told is None else told["main"]
        try:
            for loop, count in zip(self.loops, times):
                ir = ir.repeat(loop.ops, loop.carried, loop.collected, count)
        except native.InvalidArgumentError as error:
            raise native.UnsupportedError(
                "a program with a loop over an unknown number of steps is trained by one minimize() of an optimizer, not by "
                f"fleet.distributed_optimizer or append_backward ({error})") from None
        return ir

    def _make(self, program, times):
        told, ir = program.trained_by, self._repeated(program, times)
        member = program.made_of(ir)
        if told is not None:
            self._train(member, program, told)
        return member

    @staticmethod
    def _train(member, program, told):
        """What minimize() added, once more: the same names, as the same names were counted before."""
        optimizer = told["optimizer"]
        kept = copy.copy(optimizer.__dict__)
        rate = optimizer._learning_rate_map.get(program)
        optimizer._learning_rate_map = dict(optimizer._learning_rate_map)
        if rate is not None and member.ir.has(rate.name):
            optimizer._learning_rate_map[member] = member._variable(rate.name)
        try:
            with _graph.program_guard(member, _graph.Program()), unique_name.guard(told["names"]), \
                    unique_name.guard(unique_name.snapshot()):
                optimizer.minimize(member._variable(told["loss"].name), None, told["parameters"], told["no_grad_set"])
        finally:
            optimizer.__dict__.update(kept)
        missing = set(member.ir.persistables()) - set(program.ir.persistables())
        if missing:
            raise native.UnsupportedError(f"{type(optimizer).__name__} in a program with a loop: it would keep "
                                          f"{', '.join(sorted(missing)[:3])} for each number of steps; use SGD, Momentum or Adam")
