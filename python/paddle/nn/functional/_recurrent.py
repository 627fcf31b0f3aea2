"""LSTMs over padded sequences, by one op: the number of steps need not be known when the program is built."""
from paddle import tensor as T
from paddle._graph import call, emit


def reordered(weight, order):
    """The four parts of the first dimension, in another order."""
    parts = T.split(weight, 4, 0)
    return T.concat([parts[i] for i in order], 0)


def _numbers(x):
    """0, 1, 2, ... for each row of x."""
    one = call("fill_batch_like", {"x": x}, {"shape": [-1], "value": 1.0, "dtype": "int64", "input_dim": 0,
                                             "output_dim": 0})
    return T.subtract(call("cumsum", {"x": one}, {"axis": 0}), one)


class Padded:
    """x [batch, steps, width] as the rows of its sequences. Steps from sequence_length on, if it is given, do not count."""

    def __init__(self, x, sequence_length=None):
        self.x, steps = x, x.shape[1]
        self.rows = T.reshape(x, [-1, x.shape[2]])
        number = _numbers(x)
        if steps >= 0:
            self.starts = T.scale(number, float(steps))
            all_steps = T.scale(T.ones_like(number), float(steps))
        else:
            count = T.cast(T.slice(T.shape(x), [0], [1], [2]), "int64")
            self.starts = T.multiply(number, count)
            all_steps = T.multiply(T.ones_like(number), count)
        self.lengths = all_steps if sequence_length is None else T.cast(T.reshape(sequence_length, [-1]), "int64")

    def padded(self, rows):
        """[batch, steps, ...] of rows that were computed from these."""
        steps = self.x.shape[1]
        return T.reshape(rows, [-1, steps if steps >= 0 else T.shape(self.x)[1], rows.shape[-1]])

    def last(self, rows, reverse):
        """The row that each sequence ends with."""
        if reverse:
            return T.gather(rows, self.starts)
        ends = T.subtract(T.add(self.starts, self.lengths), T.ones_like(self.starts))
        return T.gather(rows, T.maximum(ends, self.starts))


def lstm(x, w_x, w_h, bias, h0=None, c0=None, sequence_length=None, reverse=False):
    """x [batch, steps, in], w_x [in, 4 * width], w_h [width, 4 * width]; gates g, i, f, o. Gives (outputs [batch, steps,
    width], last h, last c). Beyond its end a sequence gives zeros and keeps its states."""
    gates = T.matmul(x, w_x)
    at = Padded(gates if bias is None else T.add(gates, bias), sequence_length)
    out = emit("lstm", {"x": at.rows, "weight": w_h, "h0": h0, "c0": c0, "starts": at.starts, "lengths": at.lengths},
               {"reverse": bool(reverse)})
    hidden, cell = out["hidden"][0], out["cell"][0]
    return at.padded(hidden), at.last(hidden, reverse), at.last(cell, reverse)
