"""Steps that the executor does between runs of a program's ops, on values: loops that end by a value, arrays of variables,
beam search, and results whose number of rows depends on values. The ops before, between and behind them are parts of the
program that run by themselves; what one part gives and another reads goes through here as an array. No gradient goes
through a step."""
import contextlib

import numpy

from paddle import _graph
from paddle._native import native, user_line
from paddle.utils import unique_name


class Step:
    """does(values): takes values of variables by name from a dict and puts others there."""

    def __init__(self, program, does, reads):
        self.at = self.end = program.ir.op_count()
        self.does, self._reads = does, list(reads)

    def reads(self):
        return self._reads


class Loop:
    """Ops and steps that are repeated as long as a variable holds. carried: (variable, what takes its place)."""

    def __init__(self, program, condition):
        self.at, self.end = program.ir.op_count(), None
        self.condition, self.steps, self.carried = condition, [], []

    def reads(self):
        names = [self.condition] + [name for pair in self.carried for name in pair]
        return names + [name for step in self.steps for name in step.reads()]

    def run(self, part, values):
        while numpy.asarray(values[self.condition]).all():
            part(self.steps, self.at, self.end, values)
            new = [values[after] for _, after in self.carried]
            values.update(zip((before for before, _ in self.carried), new))
        values.update([(after, values[before]) for before, after in self.carried])


class Steps:
    """Of a program."""

    def __init__(self, program):
        self._program, self._open = program, [[]]
        self._parts, self._key = {}, None

    def of(self, program):
        """The same ones of a copy of the program."""
        if program.ir.op_count() != self._program.ir.op_count():
            raise native.UnsupportedError("a program with While, arrays or beam_search is cloned before it has other ops than "
                                          "those of inference")
        copy = Steps(program)
        copy._open = [list(self._open[0])]
        return copy

    def add(self, does, reads):
        self._open[-1].append(Step(self._program, does, reads))

    @contextlib.contextmanager
    def loop(self, condition):
        program = self._program
        before = [(v, v.name, _levels(v)) for v in set(program._variables.values())]
        loop, old = Loop(program, condition.name), condition.name
        self._open.append(loop.steps)
        try:
            yield
        finally:
            self._open.pop()
        loop.end = program.ir.op_count()
        if condition.name == old:
            raise native.InvalidArgumentError(f"While: its block does not change the condition '{old}': it would never end")
        for v, name, levels in before:
            if v.name == name:
                continue
            now = _levels(v)
            if len(now) != len(levels) and levels:
                raise native.UnsupportedError(f"While: '{name}' has sequences of {len(levels)} levels before the loop and of "
                                              f"{len(now)} after a step of it")
            if len(now) != len(levels):
                v.lengths = None
            loop.carried += [(name, v.name)] + [pair for pair in zip(levels, now) if pair[0] != pair[1]]
        self._open[-1].append(loop)

    def run(self, values, fetch, execute):
        """Values of `fetch`. execute(ir, feed, names) runs ops."""
        program = self._program
        key = program.ir.version, program.ir.op_count()
        if self._key != key:
            self._key, self._parts = key, {}
            self._ops = [(_names(op["inputs"]), _names(op["outputs"])) for op in program.ir.ops()]

        def part(steps, begin, end, values):
            for step in steps:
                ops(begin, step.at, values)
                step.run(part, values) if isinstance(step, Loop) else step.does(values)
                begin = step.end
            ops(begin, end, values)

        def ops(begin, end, values):
            if begin == end:
                return
            if (begin, end, tuple(fetch)) not in self._parts:
                self._parts[begin, end, tuple(fetch)] = self._part(begin, end, set(fetch))
            ir, inputs, wanted = self._parts[begin, end, tuple(fetch)]
            feed = {name: values[name] for name in inputs if name in values}
            if any(numpy.size(value) == 0 for value in feed.values()):
                ir, feed, wanted = self._of_nothing(begin, end, ir, feed, wanted, values)
            if wanted:
                values.update(zip(wanted, execute(ir, feed, wanted)))

        part(self._open[0], 0, len(self._ops), values)
        return [values[name] if name in values else execute(program.ir.prune([name]), {}, [name])[0] for name in fetch]

    def _part(self, begin, end, fetch):
        """Ops from one place to another as a program: (it, its inputs, what others need of it)."""
        ir, inside = self._program.ir, self._ops[begin:end]
        made = set().union(*(outputs for _, outputs in inside))
        read = set().union(*(inputs for inputs, _ in inside)) - made
        elsewhere = fetch.union(*(inputs for inputs, _ in self._ops[:begin] + self._ops[end:]),
                                *(step.reads() for step in self._open[0]))
        wanted = sorted(name for name in made if name in elsewhere or ir.var(name)["persistable"])
        if not wanted:
            return ir, [], []
        inputs = sorted(name for name in read if not ir.var(name)["persistable"])
        ir = ir.with_fed([name for name in inputs if not ir.var(name)["is_data"]])
        other = {name: shape for name, shape in self._loose_shapes(self._open[0]).items() if name in inputs}
        if other:
            ir = ir.with_inputs(sorted(other.items()))
        ir = ir.prune(wanted)
        return ir, [name for name in inputs if ir.has(name)], wanted

    def _of_nothing(self, begin, end, ir, feed, wanted, values):
        """Where inputs have no rows, as when beam_search has ended: what is computed from them has none either. Gives what
        is left to compute."""
        empty = {name for name, value in feed.items() if numpy.size(value) == 0}
        for inputs, outputs in self._ops[begin:end]:
            if inputs & empty:
                empty |= outputs
        for name in wanted:
            if name in empty:
                values[name] = numpy.zeros([max(0, d) for d in ir.shape(name)], str(ir.dtype(name)))
        wanted = [name for name in wanted if name not in empty]
        ir = ir.prune(wanted) if wanted else ir
        return ir, {name: value for name, value in feed.items() if ir.has(name)}, wanted

    def _loose_shapes(self, steps):
        """Of variables that have other lengths after a step of their loop: those are unknown."""
        out, shape = {}, self._program.ir.shape
        for step in steps:
            if isinstance(step, Loop):
                for before, after in step.carried:
                    old, new = shape(before), shape(after)
                    if len(old) == len(new) and old != new:
                        loose = [a if a == b else -1 for a, b in zip(old, new)]
                        if loose != list(old):
                            out[before] = loose
                        if loose != list(new):
                            out[after] = loose
                out.update(self._loose_shapes(step.steps))
        return out


def of(program):
    if program.between is None:
        program.between = Steps(program)
    return program.between


def refuse_gradients(program, what):
    if program.between is not None:
        raise native.UnsupportedError(f"{what}: no gradient goes through While, arrays of variables, beam_search or results whose "
                                      "shape depends on values; nearest: StaticRNN, DynamicRNN, fluid.layers.rnn, where")


def _names(slots):
    return {name for names in slots.values() for name in names}


def _levels(v):
    """Names of the lengths of a variable's sequences, the innermost first."""
    names = []
    while v.lengths is not None:
        v = v.lengths
        names.append(v.name)
    return names


def output(program, what, dtype, shape, levels=0):
    """A variable that a step gives, with so many levels of lengths."""
    name = unique_name.generate(what)
    program.builder().data(name, str(dtype), list(shape), *user_line())
    made = v = program._variable(name)
    for _ in range(levels):
        name += _graph.LENGTHS_SUFFIX
        program.builder().data(name, "int64", [-1], *user_line())
        v.lengths = v = program._variable(name)
    made.lod_level = levels
    return made


def value_step(what, function, inputs, outputs, with_lengths=False):
    """A step: outputs = function(*inputs) on arrays. outputs: (dtype, shape, levels of lengths) of each. with_lengths: an
    input is (array, lengths, the innermost first), and so is an output."""
    program = _graph.program_of(inputs)
    made = [output(program, what, *spec) for spec in outputs]
    names = [(v.name, _levels(v)) for v in inputs]

    def does(values):
        given = [(values[name], [values[n] for n in levels]) if with_lengths else values[name] for name, levels in names]
        for v, value in zip(made, _graph.as_list(function(*given))):
            value, lengths = value if with_lengths else (value, [])
            values[v.name] = numpy.ascontiguousarray(value, dtype=str(v.dtype))
            for name, level in zip(_levels(v), lengths):
                values[name] = numpy.asarray(level, "int64")

    of(program).add(does, [n for name, levels in names for n in [name, *(levels if with_lengths else [])]])
    return made


class TensorArray:
    """A list of variables, by numbers that are values."""

    def __init__(self, dtype="float32"):
        self.dtype, self.like = dtype, None  # like: (dtype, shape, levels) of an element

    def write(self, x, i, condition=None):
        program = _graph.program_of([x])
        shape = [-1, *x.shape[1:]] if len(x.shape) else []
        if self.like is None:
            self.like = str(x.dtype), shape, len(_levels(x))
        elif len(self.like[1]) == len(shape):
            self.like = self.like[0], [a if a == b else -1 for a, b in zip(self.like[1], shape)], self.like[2]
        name, levels, at = x.name, _levels(x), i.name
        when = None if condition is None else condition.name

        def does(values):
            if when is not None and not numpy.asarray(values[when]).all():
                return
            elements, place = values.setdefault(self, []), int(numpy.asarray(values[at]).reshape(-1)[0])
            elements.extend([None] * (place + 1 - len(elements)))
            elements[place] = numpy.asarray(values[name]), [numpy.asarray(values[n]) for n in levels]

        of(program).add(does, [name, at, *levels] + ([] if when is None else [when]))

    def read(self, i):
        program = _graph.program_of([i])
        if self.like is None:
            raise native.InvalidArgumentError("array_read: nothing was written to the array before")
        made, at = output(program, "array_read", *self.like), i.name

        def does(values):
            elements, place = values.get(self, []), int(numpy.asarray(values[at]).reshape(-1)[0])
            if not 0 <= place < len(elements) or elements[place] is None:
                raise native.InvalidArgumentError(f"array_read: element {place} of an array of {len(elements)} was not written")
            values[made.name], levels = elements[place]
            values.update(zip(_levels(made), levels))

        of(program).add(does, [at])
        return made

    def elements(self, values):
        """[(array, lengths)], while a step runs."""
        return values.get(self, [])
