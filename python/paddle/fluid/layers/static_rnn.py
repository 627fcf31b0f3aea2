"""Steps of a recurrent layer that the script writes itself. A program has no loops: the ops of the step are written once
by the script and then once more for every further step; where their number is not known, when a batch says it
(paddle._loops)."""
import contextlib

import numpy

from paddle import _graph, _loops
from paddle import tensor as T
from paddle._native import native, user_line
from paddle.utils import unique_name

__all__ = ["DynamicRNN", "StaticRNN"]


class StaticRNN:
    """Over [steps, batch, ...]:

        rnn = StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            before = rnn.memory(shape=[-1, 10], batch_ref=word)
            now = fc([word, before], 10)
            rnn.update_memory(before, now)
            rnn.step_output(now)
        outputs = rnn()             # [steps, batch, 10]
    """

    def __init__(self, name=None):
        self._steps = None  # a number, or -1
        self._count = None  # variables of a loop: the number of steps, and the step
        self._step = None
        self._inputs = {}  # name of the variable of the first step -> variables of all steps
        self._whole = {}  # name of the variable of the first step -> variable of all steps
        self._memories = {}  # name in the first step -> variable of the next one
        self._outputs = []
        self._ranges = []  # of ops that are written again
        self._program = self._begin = self._results = None

    @contextlib.contextmanager
    def step(self):
        if self._results is not None:
            raise native.InvalidArgumentError(f"{type(self).__name__}: one has one step; make another one")
        self._program = _graph.default_main_program()
        self._begin = self._program.ir.op_count()
        yield
        with self._outside():
            missing = [name for name, new in self._memories.items() if new is None]
            if self._steps is None or missing or not self._outputs:
                raise native.InvalidArgumentError(f"{type(self).__name__}: the step needs a step_input, an update_memory for "
                                                  "each memory, and an output")
            self._results = self._unrolled() if self._steps >= 0 else self._looped()
        self._begin = None

    @contextlib.contextmanager
    def _outside(self):
        """Ops that are added inside are not part of the step."""
        if self._begin is None:
            raise native.InvalidArgumentError(f"{type(self).__name__}: call this inside of the block of its step")
        self._ranges.append((self._begin, self._program.ir.op_count()))
        yield
        self._begin = self._program.ir.op_count()

    def step_input(self, x):
        steps = x.shape[0]
        if self._steps not in (None, steps):
            raise native.InvalidArgumentError(f"StaticRNN: '{x.name}' {list(x.shape)} has not the {self._steps} steps of "
                                              "another input")
        if steps < 0:
            return self._input_of_a_loop(x)
        self._steps = steps
        with self._outside():
            parts = T.unbind(x, 0)
        self._inputs[parts[0].name], self._whole[parts[0].name] = parts, x
        return parts[0]

    def _input_of_a_loop(self, x):
        if self._steps is None:
            with self._outside():
                self._begin_loop(T.cast(T.slice(T.shape(x), [0], [0], [1]), "int64"))
        part = T.squeeze(T.gather(x, self._step), 0)
        self._whole[part.name] = x
        return part

    def _begin_loop(self, count):
        self._steps, self._count = -1, count
        self._step = T.zeros([1], "int64")
        with self._inside():
            self._memories[self._step.name] = T.scale(self._step, 1.0, 1.0)

    @contextlib.contextmanager
    def _inside(self):
        """Inside of _outside(): ops that are part of the step all the same."""
        self._begin = self._program.ir.op_count()
        yield
        self._ranges.append((self._begin, self._program.ir.op_count()))

    def memory(self, init=None, shape=None, batch_ref=None, init_value=0.0, init_batch_dim_idx=0, ref_batch_dim_idx=1):
        """A variable of the step before; `init`, or init_value in this shape, before the first step."""
        with self._outside():
            if init is None:
                if shape is None or batch_ref is None:
                    raise native.InvalidArgumentError("StaticRNN.memory needs init, or shape and batch_ref")
                numbers = [1 if d is None or d < 0 else int(d) for d in shape]
                batch_ref = self._whole.get(batch_ref.name, batch_ref)
                first = _graph.call("fill_batch_like", {"x": batch_ref}, {
                    "shape": numbers, "value": float(init_value), "dtype": "float32", "input_dim": ref_batch_dim_idx,
                    "output_dim": init_batch_dim_idx})
            else:
                first = T.assign(init)
        self._memories[first.name] = None
        return first

    def update_memory(self, mem, var):
        if mem.name not in self._memories:
            raise native.InvalidArgumentError(f"{type(self).__name__}.update_memory: '{mem.name}' is no memory of this one")
        self._memories[mem.name] = var

    def step_output(self, o):
        self._outputs.append(o)

    def output(self, *outputs):
        self._outputs += outputs

    def number(self, reverse=False):
        """The number of this step, [1]; with reverse, counted from the last one."""
        if self._steps >= 0:
            order = range(self._steps - 1, -1, -1) if reverse else range(self._steps)
            return self.step_input(T.assign(numpy.array(order, "int64").reshape(-1, 1)))
        return T.subtract(T.scale(self._count, 1.0, -1.0), self._step) if reverse else self._step

    def last(self, results):
        """Of the results of all steps those of the last one."""
        end = T.scale(self._count, 1.0, -1.0) if self._steps < 0 else T.assign(numpy.array([self._steps - 1]))
        return T.squeeze(T.gather(results, end), 0)

    # ---- a known number of steps ----
    def _unrolled(self):
        """Writes the ops of the step again for all further steps; the outputs of all steps, stacked."""
        body = [op for begin, end in self._ranges for op in self._program.ir.ops()[begin:end]]
        name_of, outputs = {}, [[v] for v in self._outputs]
        for t in range(1, self._steps):
            # All memories change at once: what they become is looked up in the step before.
            new = {name: name_of.get(v.name, v.name) for name, v in self._memories.items()}
            new.update((name, parts[t].name) for name, parts in self._inputs.items())
            name_of = new
            for op in body:
                self._write(op, name_of)
            for v, all_steps in zip(self._outputs, outputs):
                all_steps.append(self._program._variable(name_of.get(v.name, v.name)))
        return [T.stack(each, 0) for each in outputs]

    def _write(self, op, name_of):
        inputs = [(slot, [name_of.get(n, n) for n in names]) for slot, names in op["inputs"].items() if names]
        dests = []
        for slot, names in op["outputs"].items():
            new = []
            for n in names:
                if not self._program.ir.var(n)["persistable"]:  # what lives from step to step is written in place
                    name_of[n] = unique_name.generate(n)
                new.append(name_of.get(n, n))
            if new:
                dests.append((slot, new))
        builder = self._program.builder()
        builder.op(op["type"], inputs, op["attrs"], dests, unique_name.generate(op["type"]), *user_line())
        for n in (n for names in op["outputs"].values() for n in names):
            if self._program.ir.var(n)["stop_gradient"] and not self._program.ir.var(name_of.get(n, n))["stop_gradient"]:
                builder.set_stop_gradient(name_of[n], True)

    # ---- any number of steps ----
    def _looped(self):
        """Notes the loop at the program; the outputs of all steps."""
        if not self._whole:
            return []  # loop_until() tells of them
        rows = [self._rows(v) for v in self._outputs]
        self._note([(all_rows.name, v.name) for all_rows, v in zip(rows, self._outputs)], False)
        batch = T.shape(next(iter(self._whole.values())))[1]
        return [T.reshape(all_rows, [-1, batch, *(int(d) for d in v.shape[1:])]) for all_rows, v in zip(rows, self._outputs)]

    @staticmethod
    def _rows(output):
        """The rows of this step's output, then those of the next one's: in the program with one step there is only one."""
        return _graph.call("concat", {"xs": [output]}, {"axis": 0})

    def loop_until(self, most):
        """For a loop without inputs: what its outputs are in the last step."""
        self._most = most
        return [T.assign(v) for v in self._outputs]

    def note_until(self, done, lasts):
        """The loop ends when the variable `done` is 1 in the last step, or after `most` steps."""
        self._note([(last.name, v.name) for last, v in zip(lasts, self._outputs)], False)
        self._program.family.loops[-1].ends_at(done.name, self._most)

    def _note(self, collected, rounded):
        ops = self._program.ir.ops()
        body = [next(n for names in ops[i]["outputs"].values() for n in names)
                for begin, end in self._ranges for i in range(begin, end)]
        carried = [(name, v.name) for name, v in self._memories.items()]
        if self._program.family is None:
            self._program.family = _loops.Family()
        self._program.family.loops.append(_loops.Loop(self._count.name, body, carried, collected, rounded))

    def __call__(self, *args, **kwargs):
        if self._results is None:
            raise native.InvalidArgumentError(f"{type(self).__name__}: the block of its step comes first")
        return self._results[0] if len(self._results) == 1 else self._results


class DynamicRNN(StaticRNN):
    """Over the rows of sequences of any length. A step is done for all of them; those that have ended keep their memories,
    and give no row."""

    def __init__(self, name=None):
        super().__init__(name)
        self._lengths = self._inside_now = None

    block = StaticRNN.step

    def step_input(self, x, level=0):
        from paddle.fluid.layers import sequence as S
        if level != 0 or x.lod_level > 1:
            raise native.UnsupportedError("DynamicRNN.step_input: sequences of sequences (level) are not here")
        lengths = S._lengths("DynamicRNN.step_input", x)
        with self._outside():
            starts = S._starts(lengths)
            if self._lengths is None:
                self._lengths, self._rows_of = lengths, x
                self._begin_loop(T.max(lengths))
        if self._inside_now is None:
            self._inside_now = T.less_than(self._step, self._lengths)
        row = T.where(self._inside_now, T.add(starts, self._step), T.zeros_like(starts))
        part = T.gather(x, row)
        part.lengths = None
        return part

    def static_input(self, x):
        """The same in every step. (Sequences are not sorted by length here.)"""
        return x

    def memory(self, init=None, shape=None, value=0.0, need_reorder=False, dtype="float32"):
        if self._lengths is None:
            raise native.InvalidArgumentError("DynamicRNN.memory: step_input comes first")
        if init is None and shape is None:
            raise native.InvalidArgumentError("DynamicRNN.memory needs init or shape")
        with self._outside():
            if init is None:
                init = T.full([T.shape(self._lengths)[0], *shape], value, dtype)
            first = T.assign(init)
            first.stop_gradient = init.stop_gradient
        self._memories[first.name] = None
        return first

    def update_memory(self, ex_mem, new_mem):
        """Of sequences that have not ended."""
        inside = T.reshape(self._inside_now, [-1] + [1] * (len(new_mem.shape) - 1))
        super().update_memory(ex_mem, T.where(inside, new_mem, ex_mem))

    def _looped(self):
        from paddle.fluid.layers import sequence as S
        rows = [self._rows(v) for v in self._outputs]
        self._note([(all_rows.name, v.name) for all_rows, v in zip(rows, self._outputs)], True)
        at = S._Places("DynamicRNN", S._with(T.assign(self._rows_of), self._lengths))
        batch = T.cast(T.slice(T.shape(self._lengths), [0], [0], [1]), "int64")
        row = T.add(T.multiply(at.place, batch), at.sequence)
        return [S._with(T.gather(all_rows, row), self._lengths) for all_rows in rows]


def over_steps(step, x, states, sequence_length=None, reverse=False, zeros_behind=False):
    """step(x of one step, states) gives (outputs, new states), variables or lists of them; x is [steps, batch, ...]. Gives
    (outputs of all steps, last states). From its end on a sequence keeps its states, and with zeros_behind gives zeros."""
    rnn = StaticRNN()
    whole = T.flip(x, [0]) if reverse else x
    with rnn.step():
        part = rnn.step_input(whole)
        inside = None
        if sequence_length is not None:
            inside = T.less_than(rnn.number(reverse), T.cast(T.reshape(sequence_length, [-1]), "int64"))
        before = _graph.nested(lambda s: rnn.memory(init=s), states)
        out, new = step(part, before)
        if inside is not None:
            def kept(now, old):
                return T.where(T.reshape(inside, [-1] + [1] * (len(now.shape) - 1)), now, old)
            new = _graph.nested(kept, new, before)
            if zeros_behind:
                out = _graph.nested(lambda o: kept(o, T.zeros_like(o)), out)
        _graph.nested(rnn.update_memory, before, new)
        names = _graph.nested(lambda v: (rnn.step_output(v), len(rnn._outputs) - 1)[1], [out, new])
    results = rnn() if len(rnn._outputs) > 1 else [rnn()]
    out, last = _graph.nested(lambda i: results[i], names)
    ends = _graph.nested(rnn.last, last)
    return _graph.nested(lambda o: T.flip(o, [0]), out) if reverse else out, ends
