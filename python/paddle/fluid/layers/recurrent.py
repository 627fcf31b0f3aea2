"""Recurrent layers of 1.x. dynamic_lstm and dynamic_gru go over sequences of any length, as ops of their own; lstm over
padded ones."""
from paddle import _param
from paddle import tensor as T
from paddle._graph import call, emit
from paddle._native import native
from paddle.fluid.layers.sequence import _lengths, _starts, _with
from paddle.fluid.layers import nn as _nn
from paddle.nn.functional import _recurrent
from paddle.tensor.math import activate
from paddle.utils import unique_name

__all__ = ["dynamic_lstm", "dynamic_lstmp", "dynamic_gru", "gru_unit", "lstm"]


def _parts(what, size, count):
    if size % count:
        raise native.InvalidArgumentError(f"{what}: size={size} must be a multiple of {count}")
    return size // count


def _flat(bias):
    return None if bias is None else T.reshape(bias, [-1])


def dynamic_lstm(input, size, h_0=None, c_0=None, param_attr=None, bias_attr=None, use_peepholes=True, is_reverse=False,
                 gate_activation="sigmoid", cell_activation="tanh", candidate_activation="tanh", dtype="float32",
                 name=None):
    """(hidden, cell) of an LSTM over each sequence. `input` holds the inputs' part of the gates, [rows, size], with
    size = 4 * width, made by an fc before."""
    width, lengths = _parts("dynamic_lstm", size, 4), _lengths("dynamic_lstm", input)
    layer = name or unique_name.generate("lstm")
    weight = _param.make([width, size], param_attr, layer, dtype)
    bias = _param.make([1, (7 if use_peepholes else 4) * width], bias_attr, layer, dtype, is_bias=True)
    attrs = {"reverse": bool(is_reverse), "gate_activation": gate_activation, "cell_activation": cell_activation,
             "candidate_activation": candidate_activation}
    out = emit("lstm", {"x": input, "weight": weight, "bias": _flat(bias), "h0": h_0, "c0": c_0,
                        "starts": _starts(lengths), "lengths": lengths}, attrs, None, layer)
    return _with(out["hidden"][0], lengths), _with(out["cell"][0], lengths)


def dynamic_lstmp(input, size, proj_size, param_attr=None, bias_attr=None, use_peepholes=True, is_reverse=False,
                  gate_activation="sigmoid", cell_activation="tanh", candidate_activation="tanh", proj_activation="tanh",
                  dtype="float32", name=None, h_0=None, c_0=None, cell_clip=None, proj_clip=None):
    """(projection, cell) of an LSTM over each sequence whose state is projected: rows of width proj_size, of which the
    next step reads. A DynamicRNN; cell_clip and proj_clip are the largest absolute values."""
    from paddle.fluid.layers.sequence import sequence_reverse
    from paddle.fluid.layers.static_rnn import DynamicRNN
    width, layer = _parts("dynamic_lstmp", size, 4), name or unique_name.generate("lstmp")
    weight = _param.make([proj_size, size], param_attr, layer, dtype)
    projection = _param.make([width, proj_size], param_attr, layer, dtype)
    bias = _param.make([1, (7 if use_peepholes else 4) * width], bias_attr, layer, dtype, is_bias=True)
    bias = _flat(bias)
    peepholes = T.split(T.slice(bias, [0], [size], [7 * width]), 3) if bias is not None and use_peepholes else [None] * 3
    bias = bias if bias is None else T.slice(bias, [0], [0], [size])

    def gate(z, peephole, cell):
        return activate(z if peephole is None else T.add(z, T.multiply(cell, peephole)), gate_activation)

    def clipped(x, most):
        return T.clip(x, -most, most) if most else x

    rnn, rows = DynamicRNN(), sequence_reverse(input) if is_reverse else input
    with rnn.block():
        z = rnn.step_input(rows)
        before = rnn.memory(init=h_0, shape=[proj_size])
        cell = rnn.memory(init=c_0, shape=[width])
        z = T.add(z, T.matmul(before, weight))
        g, i, f, o = T.split(z if bias is None else T.add(z, bias), 4, 1)
        i, f = gate(i, peepholes[0], cell), gate(f, peepholes[1], cell)
        new = clipped(T.add(T.multiply(f, cell), T.multiply(i, activate(g, candidate_activation))), cell_clip)
        hidden = T.multiply(gate(o, peepholes[2], new), activate(new, cell_activation))
        out = clipped(activate(T.matmul(hidden, projection), proj_activation), proj_clip)
        rnn.update_memory(before, out)
        rnn.update_memory(cell, new)
        rnn.output(out, new)
    both = rnn()
    return tuple(sequence_reverse(v) for v in both) if is_reverse else tuple(both)


def dynamic_gru(input, size, param_attr=None, bias_attr=None, is_reverse=False, gate_activation="sigmoid",
                candidate_activation="tanh", h_0=None, origin_mode=False):
    """States of a GRU over each sequence. `input` holds the inputs' part of the gates, [rows, 3 * size]."""
    lengths, layer = _lengths("dynamic_gru", input), unique_name.generate("gru")
    weight = _param.make([size, 3 * size], param_attr, layer)
    bias = _param.make([1, 3 * size], bias_attr, layer, is_bias=True)
    out = _gru(input, weight, bias, h_0, _starts(lengths), lengths, is_reverse, gate_activation, candidate_activation,
               origin_mode, layer)
    return _with(out["hidden"][0], lengths)


def _gru(input, weight, bias, h0, starts, lengths, reverse, gate, activation, origin, name):
    attrs = {"reverse": bool(reverse), "gate_activation": gate, "activation": activation, "origin": bool(origin)}
    return emit("gru", {"x": input, "weight": weight, "bias": _flat(bias), "h0": h0, "starts": starts,
                        "lengths": lengths}, attrs, None, name)


def gru_unit(input, hidden, size, param_attr=None, bias_attr=None, activation="tanh", gate_activation="sigmoid",
             origin_mode=False):
    """One step of a GRU: (new state, reset gate * old state, gates). size = 3 * width. No gradient flows through the
    last two."""
    width, layer = _parts("gru_unit", size, 3), unique_name.generate("gru_unit")
    weight = _param.make([width, size], param_attr, layer)
    bias = _param.make([1, size], bias_attr, layer, is_bias=True)
    ones = call("fill_batch_like", {"x": input}, {"shape": [-1], "value": 1.0, "dtype": "int64", "input_dim": 0,
                                                  "output_dim": 0})
    out = _gru(input, weight, bias, hidden, _starts(ones), ones, False, gate_activation, activation, origin_mode, layer)
    gates = out["gates"][0]
    gates.stop_gradient = True
    reset = T.multiply(T.slice(gates, [1], [width], [2 * width]), hidden)
    reset.stop_gradient = True
    return out["hidden"][0], reset, gates


def lstm(input, init_h, init_c, max_len, hidden_size, num_layers, dropout_prob=0.0, is_bidirec=False, is_test=False,
         name=None, default_initializer=None, seed=-1):
    """Layers of LSTMs over [steps, batch, in]: (outputs [steps, batch, width * directions], last h, last c [layers *
    directions, batch, width]). All weights are one parameter."""
    layer, ways = name or unique_name.generate("cudnn_lstm"), 2 if is_bidirec else 1
    widths = [input.shape[2]] + [hidden_size * ways] * (num_layers - 1)
    shapes = [[4 * hidden_size, columns] for width in widths for _ in range(ways) for columns in (width, hidden_size)]
    shapes += [[4 * hidden_size]] * (2 * num_layers * ways)
    counts = [shape[0] * (shape + [1])[1] for shape in shapes]
    weight = _param.make([sum(counts)], None, layer, default_init=default_initializer)
    weights = [T.reshape(part, shape) for part, shape in zip(T.split(weight, counts, 0), shapes)]
    biases = weights[2 * num_layers * ways:]
    first_h, first_c = T.unbind(init_h, 0), T.unbind(init_c, 0)
    x, last_h, last_c = T.transpose(input, [1, 0, 2]), [], []
    for i in range(num_layers):
        if i > 0 and dropout_prob > 0:
            x = _nn.dropout(x, dropout_prob, is_test, None if seed < 0 else seed,
                            dropout_implementation="upscale_in_train")
        outputs = []
        for way in range(ways):
            k = i * ways + way
            w_x, w_h = [_recurrent.reordered(w, (2, 0, 1, 3)) for w in weights[2 * k:2 * k + 2]]
            bias = _recurrent.reordered(T.add(biases[2 * k], biases[2 * k + 1]), (2, 0, 1, 3))
            out, h, c = _recurrent.lstm(x, T.transpose(w_x, [1, 0]), T.transpose(w_h, [1, 0]), bias, first_h[k],
                                        first_c[k], None, way == 1)
            outputs.append(out), last_h.append(h), last_c.append(c)
        x = T.concat(outputs, 2)
    return T.transpose(x, [1, 0, 2]), T.stack(last_h, 0), T.stack(last_c, 0)
