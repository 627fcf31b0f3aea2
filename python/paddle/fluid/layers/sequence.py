"""Layers over sequences. An input with lod_level=1 brings the lengths of its sequences along (Variable.lengths): its
rows are those of the first sequence, then those of the second, and so on."""
import numpy

from paddle import _between
from paddle import tensor as T
from paddle._graph import call, emit
from paddle._native import native, user_line
from paddle.nn import functional as F
from paddle.utils import unique_name

__all__ = ["sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
           "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool",
           "sequence_reshape", "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax",
           "sequence_unpad", "lod_reset"]
_POOLS = {"sum": "sum", "average": "mean", "sqrt": "sqrt", "max": "max", "first": "first", "last": "last"}


def _lengths(what, x):
    if x.lengths is None:
        raise native.InvalidArgumentError(
            f"{what}: '{x.name}' has no sequences; declare the input with lod_level=1")
    return x.lengths


def _starts(lengths):
    return T.subtract(call("cumsum", {"x": lengths}, {"axis": 0}), lengths)


class _Places:
    """Of every row: the number of its sequence, its place there, how many rows are left from it on, and itself."""

    def __init__(self, what, x):
        self.lengths = _lengths(what, x)
        at = emit("sequence_place", {"like": x, "lengths": self.lengths})
        self.sequence, self.place, self.rest = (_with(at[slot][0], None) for slot in ("sequence", "place", "rest"))
        one = T.ones_like(self.place)
        self.row = T.subtract(call("cumsum", {"x": one}, {"axis": 0}), one)

    def inside(self, by):
        """Is there a row `by` rows further in the sequence?"""
        behind = T.less_than(T.full_like(self.rest, by), self.rest)
        return behind if by >= 0 else T.logical_and(T.greater_equal(self.place, T.full_like(self.place, -by)), behind)


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
    return _with(out, input.lengths.lengths)


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
    difference = T.subtract(column, highest)
    if at.lengths.loose_rows:
        difference = T.where(T.unsqueeze(at.inside(0), 1), difference, T.zeros_like(difference))
    powers = _with(T.exp(difference), at.lengths)
    shares = T.divide(powers, T.gather(sequence_pool(powers, "sum"), at.sequence))
    return _with(T.reshape(shares, [-1] + list(input.shape[1:]), name=name), at.lengths)


def sequence_expand_as(x, y, name=None):
    """Row i of x as many times as sequence i of y has rows."""
    at = _Places("sequence_expand_as", y)
    return _with(T.gather(x, at.sequence, name=name), at.lengths)


def sequence_expand(x, y, ref_level=-1, name=None):
    """Row i of x as many times as sequence i of y has rows; of an x that has sequences (of one level), sequence i. Its
    number of rows depends on values then, and no gradient goes through it. ref_level: which sequences of y, where it has
    sequences of sequences; -1: the inner ones."""
    levels, of_y = [], y
    while of_y.lengths is not None:
        of_y = of_y.lengths
        levels.insert(0, of_y)
    if not levels or not -1 <= ref_level < len(levels):
        raise native.InvalidArgumentError(f"sequence_expand: y '{y.name}' has sequences of {len(levels)} levels; ref_level={ref_level}")
    if x.lengths is not None and x.lengths.lengths is None:
        return _between.value_step("sequence_expand", _repeated, [x, x.lengths, levels[ref_level]],
                                   [(str(x.dtype), [-1, *x.shape[1:]], 1)], with_lengths=True)[0]
    if ref_level not in (-1, len(levels) - 1):
        return T.gather(x, _with(emit("sequence_place", {"like": levels[ref_level + 1], "lengths": levels[ref_level]})["sequence"][0],
                                 None), name=name)
    return sequence_expand_as(_with(T.assign(x), None) if x.lengths is not None else x, y, name)


def _repeated(x, own, times):
    """Sequences of rows, each so often."""
    value, lengths, times = x[0], numpy.asarray(own[0]), numpy.asarray(times[0])
    starts = numpy.cumsum(lengths) - lengths
    order = numpy.repeat(numpy.arange(len(times)), times)
    rows = [numpy.arange(starts[i], starts[i] + lengths[i]) for i in order]
    return [(value[numpy.concatenate(rows) if rows else numpy.zeros(0, "int64")], [lengths[order]])]


def sequence_reverse(x, name=None):
    """The rows of each sequence from its last to its first."""
    at = _Places("sequence_reverse", x)
    # From the row to the last one as far as from the first one to the row. Rows of no sequence stay.
    step = T.subtract(T.subtract(at.rest, T.cast(at.inside(0), "int64")), at.place)
    return _with(T.gather(x, T.add(at.row, step), name=name), at.lengths)


def _shifted(x, at, by):
    """Of every row the one `by` rows further in its sequence, zeros beyond its ends."""
    inside = at.inside(by)
    rows = T.gather(x, T.where(inside, T.scale(at.row, 1.0, float(by)), at.row))
    return T.multiply(rows, T.unsqueeze(T.cast(inside, x.dtype), 1))


def sequence_conv(input, num_filters, filter_size=3, filter_stride=1, padding=True, padding_start=None, bias_attr=None,
                  param_attr=None, act=None, name=None):
    """Each row with its neighbours in its sequence (zeros beyond its ends), times a matrix."""
    from paddle.static import nn as S
    if filter_stride != 1:
        raise native.UnsupportedError("sequence_conv: filter_stride must be 1")
    if len(input.shape) != 2:
        raise native.InvalidArgumentError(f"sequence_conv: '{input.name}' of shape {list(input.shape)} must be [rows, width]; fluid.embedding "
                                          "of ids [rows, 1] gives [rows, 1, width]: fluid.layers.embedding does not, or squeeze it")
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
        inside = at.inside(i)
        there = T.gather(ids, T.where(inside, T.scale(at.row, 1.0, float(i)), at.row))
        columns.append(T.where(inside, there, T.full_like(there, pad_value)))
    return _with(T.stack(columns, 1), at.lengths)


def sequence_concat(input, name=None):
    """Sequence i of the result: sequence i of each input, one after the other."""
    lengths = [_lengths("sequence_concat", x) for x in input]
    total = T.add_n(lengths)
    starts, before, places, rows = _starts(total), T.zeros_like(total), [], []
    loose = any(own.loose_rows for own in lengths)
    for x, own in zip(input, lengths):
        at = _Places("sequence_concat", x)
        places.append(T.add(at.place, T.gather(T.add(starts, before), at.sequence)))
        rows.append(_only_inside(x, at) if loose else x)
        before = T.add(before, own)
    rows = T.concat(rows, 0)
    # Rows of no sequence are zeros and are added somewhere; the others do not meet.
    return _with(T.scatter(T.zeros_like(rows), T.concat(places, 0), rows, not loose, name), _loose(total, loose))


def _only_inside(x, at):
    """Zeros for the rows of no sequence."""
    return T.multiply(x, T.reshape(T.cast(at.inside(0), x.dtype), [-1] + [1] * (len(x.shape) - 1)))


def _loose(lengths, loose=True):
    """Lengths of sequences behind whose rows there are others, that belong to none."""
    lengths.loose_rows = loose
    return lengths


def _as_lengths(length):
    length = T.assign(T.cast(T.reshape(length, [-1]), "int64"))
    length.stop_gradient = True
    return _with(length, None)


def sequence_pad(x, pad_value, maxlen=None, name=None):
    """([sequences, maxlen, ...], lengths). Without maxlen it is the length of the longest sequence, where the lengths are
    those of an input."""
    lengths = _lengths("sequence_pad", x)
    if maxlen is None:
        places = steps_of("sequence_pad: give maxlen", lengths)
        steps = T.shape(places)[0]
    else:
        places, steps = T.assign(numpy.arange(int(maxlen), dtype="int64")), int(maxlen)
    places = T.unsqueeze(places, 0)
    inside = T.less_than(places, T.unsqueeze(lengths, 1))
    rows = T.where(inside, T.add(T.unsqueeze(_starts(lengths), 1), places), T.zeros([1], "int64"))
    row = [int(d) for d in x.shape[1:]]
    padded = T.reshape(T.gather(x, T.reshape(rows, [-1])), [-1, steps] + row)
    inside = T.reshape(inside, [-1, steps] + [1] * len(row))
    return _with(T.where(inside, padded, T.reshape(pad_value, [1] * (2 + len(row)))), None), lengths


def steps_of(what, lengths):
    """0, 1, ... for as many steps as the longest sequence has: an input that the executor feeds with the lengths."""
    from paddle._graph import STEPS_SUFFIX
    program, name = lengths.program, lengths.name + STEPS_SUFFIX
    if lengths.name not in program.lengths_of.values():
        raise native.UnsupportedError(f"{what}; the longest of sequences whose lengths are computed is known only when "
                                      "it runs")
    if not program.ir.has(name):
        program.builder().data(name, "int64", [-1], *user_line())
    return program._variable(name)


def sequence_unpad(x, length, name=None):
    """[sequences, steps, ...] -> the rows of sequences of these lengths. There are as many rows as before: those of no
    sequence stand at the end and are zeros."""
    if len(x.shape) < 2:
        raise native.InvalidArgumentError(f"sequence_unpad: '{x.name}' {list(x.shape)} must be [sequences, steps, ...]")
    lengths = _loose(_as_lengths(length))
    row = [int(d) for d in x.shape[2:]]
    rows = _with(T.reshape(x, [-1] + (row or [1])), lengths)
    at = _Places("sequence_unpad", rows)
    # The same place in a sequence whose steps begin at its number * steps.
    steps = x.shape[1] if x.shape[1] >= 0 else T.cast(T.slice(T.shape(x), [0], [1], [2]), "int64")
    first = T.scale(at.sequence, float(steps)) if isinstance(steps, int) else T.multiply(at.sequence, steps)
    taken = _only_inside(T.gather(rows, T.add(first, at.place), name=name), at)
    x.program.has_sequences = True
    return _with(taken, lengths)


def sequence_slice(input, offset, length, name=None):
    """`length` rows of each sequence from its row `offset` on. Rows of no sequence stand at the end."""
    whole, offset = _lengths("sequence_slice", input), _as_lengths(offset)
    lengths = _loose(_as_lengths(length))
    at = _Places("sequence_slice", _with(T.assign(input), lengths))
    first = T.gather(T.add(_starts(whole), offset), at.sequence)
    input.program.has_sequences = True
    return _with(_only_inside(T.gather(input, T.add(first, at.place), name=name), at), lengths)


def sequence_scatter(input, index, updates, name=None):
    """Row i of input plus updates at the columns `index`, which are sequence i."""
    at = _Places("sequence_scatter", index)
    width = input.shape[1]
    columns = T.add(T.scale(at.sequence, float(width)), T.cast(T.reshape(index, [-1]), "int64"))
    values = T.reshape(updates, [-1, 1])
    if at.lengths.loose_rows:
        values = _only_inside(values, at)
    flat = T.reshape(input, [-1, 1])
    added = T.add(flat, T.scatter(T.zeros_like(flat), columns, values, False))
    return _with(T.reshape(added, [-1, width], name=name), None)


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
