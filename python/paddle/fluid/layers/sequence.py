"""Layers over sequences. An input with lod_level=1 brings the lengths of its sequences along (Variable.lengths): its
rows are those of the first sequence, then those of the second, and so on."""
import numpy

from paddle import tensor as T
from paddle._graph import call
from paddle._native import native
from paddle.nn import functional as F
from paddle.utils import unique_name

__all__ = ["sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
           "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool",
           "sequence_reshape", "sequence_reverse", "sequence_softmax", "lod_reset"]
_POOLS = {"sum": "sum", "average": "mean", "sqrt": "sqrt", "max": "max", "first": "first", "last": "last"}


def _lengths(what, x):
    if x.lengths is None:
        raise native.InvalidArgumentError(
            f"{what}: '{x.name}' has no sequences; declare the input with lod_level=1")
    return x.lengths


def _starts(lengths):
    return T.subtract(call("cumsum", {"x": lengths}, {"axis": 0}), lengths)


def _count(like):
    """0, 1, 2, ... for every row."""
    one = call("fill_batch_like", {"x": like}, {"shape": [-1], "value": 1.0, "dtype": "int64", "input_dim": 0,
                                                "output_dim": 0})
    return T.subtract(call("cumsum", {"x": one}, {"axis": 0}), one)


class _Places:
    """Of every row: the number of its sequence, its place there, and how long that is."""

    def __init__(self, what, x):
        self.lengths = _lengths(what, x)
        self.starts = _starts(self.lengths)
        self.row = _count(x)
        # A sequence begins at its start: every row counts the starts up to it. Empty ones share theirs with the next.
        marks = T.scatter(T.zeros_like(self.row), self.starts, T.ones_like(self.starts), False)
        self.sequence = T.subtract(call("cumsum", {"x": marks}, {"axis": 0}), T.ones_like(self.row))
        self.start = T.gather(self.starts, self.sequence)
        self.place = T.subtract(self.row, self.start)
        self.length = T.gather(self.lengths, self.sequence)


def _with(x, lengths):
    x.lengths = lengths
    return x


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):
    """One row per sequence."""
    kind = str(pool_type).lower()
    if kind not in _POOLS:
        raise native.InvalidArgumentError(f"sequence_pool: pool_type must be one of {' '.join(_POOLS)}, got {pool_type!r}")
    ends = call("cumsum", {"x": _lengths("sequence_pool", input)}, {"axis": 0})
    offsets = T.concat([T.zeros([1], "int64"), ends], 0)
    out = call("sequence_pool", {"x": input, "offsets": offsets}, {"type": _POOLS[kind], "pad_value": float(pad_value)})
    return _with(out, None)


def sequence_first_step(input):
    return sequence_pool(input, "first")


def sequence_last_step(input):
    return sequence_pool(input, "last")


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    return F.sequence_mask(x, maxlen, dtype, name)


def sequence_softmax(input, use_cudnn=False, name=None):
    """Over the rows of each sequence, which are one number each."""
    at = _Places("sequence_softmax", input)
    column = _with(T.reshape(input, [-1, 1]), at.lengths)
    highest = T.gather(sequence_pool(column, "max"), at.sequence)
    powers = _with(T.exp(T.subtract(column, highest)), at.lengths)
    shares = T.divide(powers, T.gather(sequence_pool(powers, "sum"), at.sequence))
    return _with(T.reshape(shares, [-1] + list(input.shape[1:]), name=name), at.lengths)


def sequence_expand_as(x, y, name=None):
    """Row i of x as many times as sequence i of y has rows."""
    at = _Places("sequence_expand_as", y)
    return _with(T.gather(x, at.sequence, name=name), at.lengths)


def sequence_expand(x, y, ref_level=-1, name=None):
    """As sequence_expand_as, where x has one row per sequence of y. Sequences have one level: ref_level names it."""
    if ref_level not in (-1, 0):
        raise native.UnsupportedError(f"sequence_expand: ref_level={ref_level}: sequences have one level")
    if x.lengths is not None:
        raise native.UnsupportedError("sequence_expand: an x that has sequences itself is not here; nearest: rows of x, "
                                      "one per sequence of y")
    return sequence_expand_as(x, y, name)


def sequence_reverse(x, name=None):
    """The rows of each sequence from its last to its first."""
    at = _Places("sequence_reverse", x)
    last = T.subtract(T.add(at.start, at.length), T.ones_like(at.row))
    return _with(T.gather(x, T.subtract(last, at.place), name=name), at.lengths)


def _shifted(x, at, by):
    """Of every row the one `by` rows further in its sequence, zeros beyond its ends."""
    place = T.scale(at.place, 1.0, float(by))
    inside = T.logical_and(T.greater_equal(place, T.zeros_like(place)), T.less_than(place, at.length))
    rows = T.gather(x, T.where(inside, T.scale(at.row, 1.0, float(by)), at.row))
    return T.multiply(rows, T.unsqueeze(T.cast(inside, x.dtype), 1))


def sequence_conv(input, num_filters, filter_size=3, filter_stride=1, padding=True, padding_start=None, bias_attr=None,
                  param_attr=None, act=None, name=None):
    """Each row with its neighbours in its sequence (zeros beyond its ends), times a matrix."""
    from paddle.static import nn as S
    if filter_stride != 1:
        raise native.UnsupportedError("sequence_conv: filter_stride must be 1")
    at = _Places("sequence_conv", input)
    first = -(filter_size // 2) if padding_start is None else int(padding_start)
    context = T.concat([_shifted(input, at, first + i) for i in range(filter_size)], 1)
    out = S.fc(context, num_filters, 1, param_attr, bias_attr, act, name or unique_name.generate("sequence_conv"))
    return _with(out, at.lengths)


def sequence_enumerate(input, win_size, pad_value=0, name=None):
    """[N, win_size]: every id and those after it in its sequence, pad_value beyond its end."""
    at = _Places("sequence_enumerate", input)
    ids, columns = T.reshape(input, [-1]), []
    for i in range(int(win_size)):
        inside = T.less_than(T.scale(at.place, 1.0, float(i)), at.length)
        there = T.gather(ids, T.where(inside, T.scale(at.row, 1.0, float(i)), at.row))
        columns.append(T.where(inside, there, T.full_like(there, pad_value)))
    return _with(T.stack(columns, 1), at.lengths)


def sequence_concat(input, name=None):
    """Sequence i of the result: sequence i of each input, one after the other."""
    lengths = [_lengths("sequence_concat", x) for x in input]
    total = T.add_n(lengths)
    starts, before, places = _starts(total), T.zeros_like(total), []
    for x, own in zip(input, lengths):
        at = _Places("sequence_concat", x)
        places.append(T.add(at.place, T.gather(T.add(starts, before), at.sequence)))
        before = T.add(before, own)
    rows = T.concat(input, 0)
    return _with(T.scatter(T.zeros_like(rows), T.concat(places, 0), rows, name=name), total)


def sequence_pad(x, pad_value, maxlen=None, name=None):
    """([sequences, maxlen, ...], lengths). maxlen must be given: it is a shape."""
    lengths = _lengths("sequence_pad", x)
    if maxlen is None:
        raise native.UnsupportedError("sequence_pad: give maxlen; the longest sequence is known only when it runs")
    places = T.assign(numpy.arange(int(maxlen), dtype="int64").reshape(1, -1))
    inside = T.less_than(places, T.unsqueeze(lengths, 1))
    rows = T.where(inside, T.add(T.unsqueeze(_starts(lengths), 1), places), T.zeros([1], "int64"))
    row = [int(d) for d in x.shape[1:]]
    padded = T.reshape(T.gather(x, T.reshape(rows, [-1])), [-1, int(maxlen)] + row)
    inside = T.reshape(inside, [-1, int(maxlen)] + [1] * len(row))
    return _with(T.where(inside, padded, T.reshape(pad_value, [1] * (2 + len(row)))), None), lengths


def sequence_reshape(input, new_dim):
    """Rows of another width; sequences become longer or shorter accordingly."""
    lengths, width = _lengths("sequence_reshape", input), input.shape[1]
    scaled = T.floor_divide(T.scale(lengths, float(width)), T.full([1], new_dim, "int64"))
    return _with(T.reshape(input, [-1, int(new_dim)]), scaled)


def lod_reset(x, y=None, target_lod=None):
    """The same rows as other sequences: those of y, or that end at target_lod."""
    if y is not None:
        lengths = y.lengths if y.lengths is not None else T.cast(y, "int64")
    elif target_lod is not None:
        lengths = T.assign(numpy.diff(numpy.array(target_lod, "int64")))
    else:
        raise ValueError("lod_reset: give y or target_lod")
    return _with(T.assign(x), lengths)
