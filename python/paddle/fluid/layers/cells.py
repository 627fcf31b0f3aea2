"""Cells of 1.x, and rnn() over them. A cell of the script is called once: its ops are those of every step."""
from paddle import _graph
from paddle import tensor as T
from paddle.fluid.contrib.layers.rnn_impl import BasicGRUUnit, BasicLSTMUnit
from paddle.fluid.layers.static_rnn import over_steps
from paddle.nn.layer import rnn as _rnn

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "rnn"]


class RNNCell:
    """A step: call(inputs, states) gives (outputs, new states)."""

    def call(self, inputs, states, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs, states)")

    def __call__(self, inputs, states, **kwargs):
        return self.call(inputs, states, **kwargs)

    get_initial_states = _rnn.RNNCellBase.get_initial_states

    @property
    def state_shape(self):
        raise NotImplementedError(f"{type(self).__name__} must define state_shape, or be given initial_states")


class LSTMCell(RNNCell):
    def __init__(self, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None, forget_bias=1.0,
                 dtype="float32", name="LSTMCell"):
        self.hidden_size = hidden_size
        self.lstm_unit = BasicLSTMUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, forget_bias, dtype)

    def call(self, inputs, states):
        hidden, cell = self.lstm_unit(inputs, *states)
        return hidden, [hidden, cell]

    state_shape = property(lambda self: [[self.hidden_size], [self.hidden_size]])


class GRUCell(RNNCell):
    def __init__(self, hidden_size, param_attr=None, bias_attr=None, gate_activation=None, activation=None, dtype="float32",
                 name="GRUCell"):
        self.hidden_size = hidden_size
        self.gru_unit = BasicGRUUnit(name, hidden_size, param_attr, bias_attr, gate_activation, activation, dtype)

    def call(self, inputs, states):
        hidden = self.gru_unit(inputs, states)
        return hidden, hidden

    state_shape = property(lambda self: [self.hidden_size])


def rnn(cell, inputs, initial_states=None, sequence_length=None, time_major=False, is_reverse=False, **kwargs):
    """(outputs, last states) of a cell over [batch, steps, ...]. From its end on a sequence keeps its states."""
    if initial_states is None:
        initial_states = cell.get_initial_states(inputs, batch_dim_idx=1 if time_major else 0)

    def turned(x):
        return x if time_major else T.transpose(x, [1, 0, *range(2, len(x.shape))])
    out, last = over_steps(lambda x, states: cell.call(x, states, **kwargs), turned(inputs), initial_states, sequence_length,
                           is_reverse)
    return _graph.nested(turned, out), last
