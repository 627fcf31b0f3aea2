"""Steps of a recurrent layer that the script writes itself. A program has no loops: the ops of the step are written once
by the script and then once more for every further step, so that the number of steps must be known."""
import contextlib

from paddle import _graph
from paddle import tensor as T
from paddle._native import native, user_line
from paddle.utils import unique_name

__all__ = ["StaticRNN"]


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
        self._steps = None
        self._inputs = {}  # name of the variable of the first step -> variables of all steps
        self._whole = {}  # name of the variable of the first step -> variable of all steps
        self._memories = {}  # name in the first step -> variable of the next one
        self._outputs = []
        self._ranges = []  # of ops that are written again
        self._program = self._begin = self._results = None

    @contextlib.contextmanager
    def step(self):
        if self._results is not None:
            raise native.InvalidArgumentError("StaticRNN.step: a StaticRNN has one step; make another one")
        self._program = _graph.default_main_program()
        self._begin = self._program.ir.op_count()
        yield
        with self._outside():
            missing = [name for name, new in self._memories.items() if new is None]
            if self._steps is None or missing or not self._outputs:
                raise native.InvalidArgumentError("StaticRNN: the step needs a step_input, an update_memory for each "
                                                  "memory, and an output")
        self._results = self._unrolled()

    @contextlib.contextmanager
    def _outside(self):
        """Ops that are added inside are not part of the step."""
        if self._begin is None:
            raise native.InvalidArgumentError("StaticRNN: call this inside of `with rnn.step():`")
        self._ranges.append((self._begin, self._program.ir.op_count()))
        yield
        self._begin = self._program.ir.op_count()

    def step_input(self, x):
        steps = x.shape[0]
        if steps < 0 or self._steps not in (None, steps):
            reason = f"another input has {self._steps}" if steps >= 0 else \
                "it must be known: programs have no loops inside; nearest: dynamic_lstm, dynamic_gru, paddle.nn.LSTM"
            raise native.UnsupportedError(f"StaticRNN: the number of steps of '{x.name}' {list(x.shape)}: {reason}")
        self._steps = steps
        with self._outside():
            parts = T.unbind(x, 0)
        self._inputs[parts[0].name], self._whole[parts[0].name] = parts, x
        return parts[0]

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
            raise native.InvalidArgumentError(f"StaticRNN.update_memory: '{mem.name}' is no memory of this one")
        self._memories[mem.name] = var

    def step_output(self, o):
        self._outputs.append(o)

    def output(self, *outputs):
        self._outputs += outputs

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

    def __call__(self, *args, **kwargs):
        if self._results is None:
            raise native.InvalidArgumentError("StaticRNN: `with rnn.step():` comes first")
        return self._results[0] if len(self._results) == 1 else self._results
