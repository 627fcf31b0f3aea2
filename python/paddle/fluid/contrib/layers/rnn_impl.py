"""LSTMs and GRUs of contrib: over padded sequences, by one op each, and single steps."""
from paddle import _param
from paddle import tensor as T
from paddle._graph import emit
from paddle._native import native
from paddle.nn import functional as F
from paddle.nn.functional import _recurrent
from paddle.utils import unique_name

__all__ = ["BasicGRUUnit", "basic_gru", "BasicLSTMUnit", "basic_lstm"]


def _default(what, given, wanted):
    if given is not None and getattr(given, "__name__", given) != wanted:
        raise native.UnsupportedError(f"{what}: activations other than sigmoid of the gates and tanh are not here; nearest: "
                                      "fluid.layers.dynamic_lstm, dynamic_gru")


def _named(attr, suffix):
    """The ParamAttr of one of several parameters; a name is made different for each."""
    attr = _param.ParamAttr._to_attr(attr)
    if not attr or attr.name is None:
        return attr
    return _param.ParamAttr(attr.name + suffix, attr.initializer, attr.learning_rate, attr.regularizer, attr.trainable,
                            attr.do_model_average, attr.need_clip)


def _columns(weight, parts, order):
    pieces = T.split(weight, parts, -1)
    return T.concat([pieces[i] for i in order], -1)


class BasicLSTMUnit:
    """A step of an LSTM: unit(input, hidden, cell) gives (hidden, cell)."""

    def __init__(self, name_scope, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 forget_bias=1.0, dtype="float32"):
        _default("BasicLSTMUnit", gate_activation, "sigmoid"), _default("BasicLSTMUnit", activation, "tanh")
        self._name, self._size, self._forget_bias = unique_name.generate(name_scope), hidden_size, float(forget_bias)
        self._attrs, self._dtype, self._weights = (param_attr, bias_attr), dtype, None

    def weights(self, width):
        """(of inputs and states [width + size, 4 * size], bias [4 * size]): gates i, g, f, o."""
        if self._weights is None:
            self._weights = (_param.make([width + self._size, 4 * self._size], self._attrs[0], self._name, self._dtype),
                             _param.make([4 * self._size], self._attrs[1], self._name, self._dtype, is_bias=True))
        return self._weights

    def __call__(self, input, pre_hidden, pre_cell):
        weight, bias = self.weights(input.shape[-1])
        gates = T.matmul(T.concat([input, pre_hidden], 1), weight)
        i, g, f, o = T.split(gates if bias is None else T.add(gates, bias), 4, -1)
        kept = T.multiply(pre_cell, F.sigmoid(T.scale(f, 1.0, self._forget_bias)))
        cell = T.add(kept, T.multiply(F.sigmoid(i), T.tanh(g)))
        return T.multiply(T.tanh(cell), F.sigmoid(o)), cell

    def over(self, x, h, c, lengths, reverse):
        """The same over all steps of [batch, steps, width]: (outputs, (last hidden, last cell))."""
        width, size = x.shape[2], self._size
        weight, bias = self.weights(width)
        w_x, w_h = T.split(_columns(weight, 4, (1, 0, 2, 3)), [width, size], 0)
        more = T.concat([T.zeros([2 * size]), T.full([size], self._forget_bias), T.zeros([size])], 0)
        bias = more if bias is None else T.add(_columns(bias, 4, (1, 0, 2, 3)), more)
        out, h, c = _recurrent.lstm(x, w_x, w_h, bias, h, c, lengths, reverse)
        return out, (h, c)


class BasicGRUUnit:
    """A step of a GRU: unit(input, hidden) gives the new hidden."""

    def __init__(self, name_scope, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
                 dtype="float32"):
        _default("BasicGRUUnit", gate_activation, "sigmoid"), _default("BasicGRUUnit", activation, "tanh")
        self._name, self._size = unique_name.generate(name_scope), hidden_size
        self._attrs, self._dtype, self._weights = (param_attr, bias_attr), dtype, None

    def weights(self, width):
        """(of the gates r and u, their bias, of the candidate, its bias)"""
        if self._weights is None:
            made = []
            for count, kind in ((2, "_gate"), (1, "_candidate")):
                shape = [width + self._size, count * self._size]
                made.append(_param.make(shape, _named(self._attrs[0], kind), self._name + kind, self._dtype))
                made.append(_param.make(shape[1:], _named(self._attrs[1], kind), self._name + kind, self._dtype, is_bias=True))
            self._weights = made
        return self._weights

    def __call__(self, input, pre_hidden):
        gate, gate_bias, candidate, bias = self.weights(input.shape[-1])
        gates = T.matmul(T.concat([input, pre_hidden], 1), gate)
        r, u = T.split(F.sigmoid(gates if gate_bias is None else T.add(gates, gate_bias)), 2, -1)
        c = T.matmul(T.concat([input, T.multiply(r, pre_hidden)], 1), candidate)
        c = T.tanh(c if bias is None else T.add(c, bias))
        return T.add(T.multiply(T.subtract(pre_hidden, c), u), c)

    def over(self, x, h, lengths, reverse):
        """The same over all steps of [batch, steps, width]: (outputs, (last hidden,))."""
        width, size = x.shape[2], self._size
        gate, gate_bias, candidate, bias = self.weights(width)
        gate_x, gate_h = T.split(_columns(gate, 2, (1, 0)), [width, size], 0)
        own_x, own_h = T.split(candidate, [width, size], 0)
        inputs = T.matmul(x, T.concat([gate_x, own_x], 1))
        if bias is not None:
            inputs = T.add(inputs, T.concat([_columns(gate_bias, 2, (1, 0)), bias], 0))
        weight = T.reshape(T.concat([T.reshape(gate_h, [-1]), T.reshape(own_h, [-1])], 0), [size, 3 * size])
        at = _recurrent.Padded(inputs, lengths)
        out = emit("gru", {"x": at.rows, "weight": weight, "h0": h, "starts": at.starts, "lengths": at.lengths},
                   {"reverse": bool(reverse), "origin": True})["hidden"][0]
        return at.padded(out), (at.last(out, reverse),)


def _stacked(make, states, input, num_layers, sequence_length, dropout_prob, bidirectional, batch_first):
    """Layers on each other: (outputs, states [layers * directions, batch, size])."""
    ways, lasts = 2 if bidirectional else 1, []
    firsts = [[None] * (num_layers * ways) if s is None else T.unbind(T.reshape(s, [num_layers * ways, -1, s.shape[-1]]), 0)
              for s in states]
    x = input if batch_first else T.transpose(input, [1, 0, 2])
    for i in range(num_layers):
        if i > 0 and dropout_prob:
            x = F.dropout(x, dropout_prob, mode="upscale_in_train")
        outputs = []
        for way in range(ways):
            k = i * ways + way
            out, last = make(k).over(x, *(s[k] for s in firsts), sequence_length, way == 1)
            outputs.append(out), lasts.append(last)
        x = T.concat(outputs, 2)
    out = x if batch_first else T.transpose(x, [1, 0, 2])
    return (out, *(T.stack(list(each), 0) for each in zip(*lasts)))


def basic_lstm(input, init_hidden, init_cell, hidden_size, num_layers=1, sequence_length=None, dropout_prob=0.0,
               bidirectional=False, batch_first=True, param_attr=None, bias_attr=None, gate_activation=None, activation=None,
               forget_bias=1.0, dtype="float32", name="basic_lstm"):
    """(outputs, last hidden, last cell) of layers of LSTMs over padded sequences."""
    def make(k):
        return BasicLSTMUnit(name, hidden_size, _named(param_attr, f"_{k}"), _named(bias_attr, f"_{k}"), gate_activation,
                             activation, forget_bias, dtype)
    return _stacked(make, (init_hidden, init_cell), input, num_layers, sequence_length, dropout_prob, bidirectional,
                    batch_first)


def basic_gru(input, init_hidden, hidden_size, num_layers=1, sequence_length=None, dropout_prob=0.0, bidirectional=False,
              batch_first=True, param_attr=None, bias_attr=None, gate_activation=None, activation=None, dtype="float32",
              name="basic_gru"):
    """(outputs, last hidden) of layers of GRUs over padded sequences."""
    def make(k):
        return BasicGRUUnit(name, hidden_size, _named(param_attr, f"_{k}"), _named(bias_attr, f"_{k}"), gate_activation,
                            activation, dtype)
    return _stacked(make, (init_hidden,), input, num_layers, sequence_length, dropout_prob, bidirectional, batch_first)
