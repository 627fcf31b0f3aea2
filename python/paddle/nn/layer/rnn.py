"""Recurrent layers. An LSTM over a sequence is one op. A program has no loops: other layers add the ops of every step, where
their number is not known when a batch says it (paddle._loops); a long sequence makes a long program."""
from paddle import _dtype
from paddle._graph import Variable, as_list, call
from paddle._native import native
from paddle.nn import functional as F
from paddle.nn import initializer as I
from paddle.nn.functional import _recurrent
from paddle.nn.layer.container import LayerList
from paddle.nn.layer.layers import Layer
from paddle.tensor import creation, logic, manipulation, math


class RNNCellBase(Layer):
    """A step: forward(inputs, states) gives (outputs, new states)."""

    def get_initial_states(self, batch_ref, shape=None, dtype=None, init_value=0.0, batch_dim_idx=0):
        """States of this value for the batch of a variable."""
        def state(length):
            shape = [-1, *as_list(length)]
            attrs = {"shape": shape, "value": float(init_value), "dtype": str(_dtype.convert(dtype or "float32")),
                     "input_dim": batch_dim_idx, "output_dim": 0}
            made = call("fill_batch_like", {"x": batch_ref}, attrs)
            made.stop_gradient = True
            return made
        shape = shape if shape is not None else self.state_shape
        nested = shape and isinstance(shape[0], (list, tuple))
        return tuple(state(s) for s in shape) if nested else state(shape)


class _Cell(RNNCellBase):
    """gates = inputs @ weight_ih^T + bias_ih, and the same of the last output."""

    GATES = 1

    def __init__(self, input_size, hidden_size, weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None,
                 bias_hh_attr=None, name=None):
        super().__init__(name)
        if hidden_size <= 0:
            raise ValueError(f"hidden_size of {type(self).__name__} must be above 0, got {hidden_size}")
        self.input_size, self.hidden_size = input_size, hidden_size
        spread = I.Uniform(-hidden_size ** -0.5, hidden_size ** -0.5)
        rows = self.GATES * hidden_size
        self.weight_ih = self.create_parameter([rows, input_size], weight_ih_attr, default_initializer=spread)
        self.weight_hh = self.create_parameter([rows, hidden_size], weight_hh_attr, default_initializer=spread)
        self.bias_ih = self.create_parameter([rows], bias_ih_attr, is_bias=True, default_initializer=spread)
        self.bias_hh = self.create_parameter([rows], bias_hh_attr, is_bias=True, default_initializer=spread)

    state_shape = property(lambda self: (self.hidden_size,))

    def project(self, inputs):
        """The part of the gates that the inputs alone give; of a step, or of all steps at once."""
        out = math.matmul(inputs, self.weight_ih, transpose_y=True)
        return out if self.bias_ih is None else math.add(out, self.bias_ih)

    def recur(self, output):
        out = math.matmul(output, self.weight_hh, transpose_y=True)
        return out if self.bias_hh is None else math.add(out, self.bias_hh)

    def forward(self, inputs, states=None):
        if states is None:
            states = self.get_initial_states(inputs)
        return self.step(self.project(inputs), states)

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}"


class SimpleRNNCell(_Cell):
    """h = activation(inputs' gates + last h's gates)."""

    def __init__(self, input_size, hidden_size, activation="tanh", weight_ih_attr=None, weight_hh_attr=None,
                 bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr, name)
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNNCell: activation must be 'tanh' or 'relu', got {activation!r}")
        self._activation = getattr(F, activation)

    def step(self, gates, h):
        h = self._activation(math.add(gates, self.recur(h)))
        return h, h


class LSTMCell(_Cell):
    """States (h, c): c = f * c + i * tanh(g), h = o * tanh(c); gates i, f, g, o."""

    GATES = 4
    state_shape = property(lambda self: ((self.hidden_size,), (self.hidden_size,)))

    def step(self, gates, states):
        h, c = states
        i, f, g, o = manipulation.split(math.add(gates, self.recur(h)), 4, -1)
        c = math.add(math.multiply(F.sigmoid(f), c), math.multiply(F.sigmoid(i), math.tanh(g)))
        h = math.multiply(F.sigmoid(o), math.tanh(c))
        return h, (h, c)


class GRUCell(_Cell):
    """h = z * h + (1 - z) * tanh(inputs' c + r * last h's c); gates r, z, c."""

    GATES = 3

    def step(self, gates, h):
        xr, xz, xc = manipulation.split(gates, 3, -1)
        hr, hz, hc = manipulation.split(self.recur(h), 3, -1)
        r, z = F.sigmoid(math.add(xr, hr)), F.sigmoid(math.add(xz, hz))
        c = math.tanh(math.add(xc, math.multiply(r, hc)))
        h = math.add(math.multiply(math.subtract(h, c), z), c)
        return h, h


def _each(function, *states):
    """A function on states, which are one variable or a tuple of them."""
    if isinstance(states[0], Variable):
        return function(*states)
    return tuple(_each(function, *s) for s in zip(*states))


class RNN(Layer):
    """A cell over all steps of a sequence [batch, steps, ...] ([steps, batch, ...] with time_major)."""

    def __init__(self, cell, is_reverse=False, time_major=False):
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        if type(self.cell) is LSTMCell and not kwargs:
            return self._lstm(inputs, initial_states, sequence_length)
        axis = 0 if self.time_major else 1
        steps = inputs.shape[axis]
        states = initial_states
        if states is None:
            states = self.cell.get_initial_states(inputs, batch_dim_idx=1 - axis)
        own = isinstance(self.cell, _Cell)
        if own and kwargs:
            raise TypeError(f"{type(self.cell).__name__} has no argument {', '.join(kwargs)}")
        if steps < 0:
            return self._looped(inputs, states, sequence_length, own, kwargs)
        parts = manipulation.unbind(self.cell.project(inputs) if own else inputs, axis)
        outputs = [None] * steps
        for t in reversed(range(steps)) if self.is_reverse else range(steps):
            out, new = self.cell.step(parts[t], states) if own else self.cell(parts[t], states, **kwargs)
            if sequence_length is not None:  # beyond its end a sequence gives zeros and keeps its states
                inside = logic.greater_than(sequence_length, creation.full([1], t, sequence_length.dtype))
                inside = manipulation.unsqueeze(manipulation.cast(inside, "float32"), 1)
                new = _each(lambda n, old: math.add(old, math.multiply(math.subtract(n, old), inside)), new, states)
                out = math.multiply(out, inside)
            outputs[t], states = out, new
        return manipulation.stack(outputs, axis), states


    def _looped(self, inputs, states, sequence_length, own, kwargs):
        """Over a number of steps that each batch brings along."""
        from paddle.fluid.layers.static_rnn import over_steps

        def turned(x):
            return x if self.time_major else manipulation.transpose(x, [1, 0, *range(2, len(x.shape))])

        def step(x, now):
            return self.cell.step(x, now) if own else self.cell(x, now, **kwargs)
        out, last = over_steps(step, turned(self.cell.project(inputs) if own else inputs), states, sequence_length,
                               self.is_reverse, True)
        return turned(out), last

    def _lstm(self, inputs, states, sequence_length):
        cell, order = self.cell, (2, 0, 1, 3)  # the op has the gates g, i, f, o
        biases = [b for b in (cell.bias_ih, cell.bias_hh) if b is not None]
        w_x, w_h = [manipulation.transpose(_recurrent.reordered(w, order), [1, 0]) for w in (cell.weight_ih, cell.weight_hh)]
        bias = _recurrent.reordered(math.add_n(biases), order) if biases else None
        x = manipulation.transpose(inputs, [1, 0, 2]) if self.time_major else inputs
        h0, c0 = states if states is not None else (None, None)
        out, h, c = _recurrent.lstm(x, w_x, w_h, bias, h0, c0, sequence_length, self.is_reverse)
        return manipulation.transpose(out, [1, 0, 2]) if self.time_major else out, (h, c)


class BiRNN(Layer):
    """A cell from the first step to the last and another one back; their outputs side by side."""

    def __init__(self, cell_fw, cell_bw, time_major=False):
        super().__init__()
        self.cell_fw, self.cell_bw = cell_fw, cell_bw
        self._forth, self._back = RNN(cell_fw, False, time_major), RNN(cell_bw, True, time_major)

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        first, second = initial_states if initial_states is not None else (None, None)
        forth, end = self._forth(inputs, first, sequence_length, **kwargs)
        back, begin = self._back(inputs, second, sequence_length, **kwargs)
        return manipulation.concat([forth, back], -1), (end, begin)


class _Stack(Layer):
    """Several recurrent layers on each other. States: [layers * directions, batch, hidden]."""

    CELL = None

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None, name=None):
        super().__init__(name)
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(f"{type(self).__name__}: direction must be 'forward' or 'bidirect', got {direction!r}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.time_major, self.dropout = time_major, dropout
        self.num_directions = 1 if direction == "forward" else 2
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)

        def cell(layer):
            width = input_size if layer == 0 else hidden_size * self.num_directions
            return self._cell(width, hidden_size, *attrs)
        self._layers = LayerList([
            RNN(cell(i), False, time_major) if self.num_directions == 1 else BiRNN(cell(i), cell(i), time_major)
            for i in range(num_layers)])

    def _cell(self, width, hidden_size, *attrs):
        return self.CELL(width, hidden_size, *attrs)

    def forward(self, inputs, initial_states=None, sequence_length=None):
        firsts, lasts = self._taken_apart(initial_states), []
        for i, layer in enumerate(self._layers):
            if i > 0 and self.dropout > 0:
                inputs = F.dropout(inputs, self.dropout, training=self.training, mode="upscale_in_train")
            inputs, states = layer(inputs, firsts[i], sequence_length)
            lasts += list(states) if self.num_directions == 2 else [states]
        return inputs, _each(lambda *each: manipulation.stack(list(each), 0), *lasts)

    def _taken_apart(self, states):
        """States of each layer: of a cell, or a pair of them for the two directions."""
        if states is None:
            return [None] * self.num_layers
        if isinstance(states, Variable):
            each = manipulation.unbind(states, 0)
        else:
            each = list(zip(*[manipulation.unbind(s, 0) for s in states]))
        n = self.num_directions
        return [each[i] if n == 1 else tuple(each[n * i:n * i + n]) for i in range(self.num_layers)]


class SimpleRNN(_Stack):
    CELL = SimpleRNNCell

    def __init__(self, input_size, hidden_size, num_layers=1, direction="forward", time_major=False, dropout=0.0,
                 activation="tanh", weight_ih_attr=None, weight_hh_attr=None, bias_ih_attr=None, bias_hh_attr=None,
                 name=None):
        self._activation = activation
        super().__init__(input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
                         weight_hh_attr, bias_ih_attr, bias_hh_attr, name)

    def _cell(self, width, hidden_size, *attrs):
        return SimpleRNNCell(width, hidden_size, self._activation, *attrs)


class LSTM(_Stack):
    CELL = LSTMCell


class GRU(_Stack):
    CELL = GRUCell
