"""Layers of 1.x that are made of others, with its arguments."""
import numpy

from paddle import _between, _graph, _param
from paddle import tensor as T
from paddle._native import native
from paddle.nn import functional as F
from paddle.static import nn as S
from paddle.tensor import math as _math
from paddle.utils import unique_name

__all__ = ["bpr_loss", "npair_loss", "teacher_student_sigmoid_loss", "hsigmoid", "mean_iou", "lrn", "bilinear_tensor_product",
           "add_position_encoding", "unique", "unique_with_counts", "where", "lstm_unit", "fsp_matrix", "crop", "pad_constant_like", "data_norm"]


def _known(what, lengths):
    if any(n < 0 for n in lengths):
        raise native.UnsupportedError(f"{what}: the lengths {list(lengths)} must be known when the program is built")


# ---- losses ----
def bpr_loss(input, label, name=None):
    """-mean over the other classes of log(sigmoid(x[label] - x[other])): [N, 1]."""
    classes = input.shape[-1]
    hot = T.one_hot(T.squeeze(label, -1), classes)
    better = T.subtract(T.sum(T.multiply(input, hot), -1, keepdim=True), input)
    others = T.multiply(F.log_sigmoid(better), T.scale(hot, -1.0, 1.0))
    return T.scale(T.sum(others, -1, keepdim=True), -1.0 / (classes - 1), name=name)


def npair_loss(anchor, positive, labels, l2_reg=0.002):
    """Anchors against the positives of the whole batch, of which those with the same label are right."""
    labels = T.reshape(labels, [-1, 1])
    same = T.cast(T.equal(labels, T.transpose(labels, [1, 0])), "float32")
    share = T.divide(same, T.sum(same, 1, keepdim=True))
    lengths = T.add(T.mean(T.sum(T.square(anchor), 1)), T.mean(T.sum(T.square(positive), 1)))
    losses = F.softmax_with_cross_entropy(T.matmul(anchor, positive, transpose_y=True), share, soft_label=True)
    return T.add(T.scale(lengths, 0.25 * l2_reg), T.mean(T.sum(T.multiply(share, losses), 0)))


def teacher_student_sigmoid_loss(input, label, soft_max_up_bound=15.0, soft_max_lower_bound=-15.0):
    """[N, 1]. A label below -1 is no click, below 0 a click, without a teacher; from 0 on the teacher's share is added,
    from 1 on it is a click and label - 1 the share. The bounds cut the gradient only in the original, and not here."""
    if (soft_max_up_bound, soft_max_lower_bound) != (15.0, -15.0):
        raise native.UnsupportedError("teacher_student_sigmoid_loss: soft_max_up_bound and soft_max_lower_bound are not here")
    def above(bound):
        return T.cast(T.greater_equal(label, T.full_like(label, bound)), "float32")
    taught, click = above(0.0), T.subtract(T.add(above(-1.0), above(1.0)), above(0.0))
    own = T.subtract(F.softplus(input), T.multiply(click, input))
    share = T.subtract(label, above(1.0))
    return T.add(own, T.multiply(taught, T.subtract(F.softplus(input), T.multiply(input, share))))


def _tree(classes):
    """Of the complete binary tree: inner nodes on the way to each class, the turns taken there, and which places of a
    row are used."""
    codes = [c + classes for c in range(classes)]
    depth = max(code.bit_length() - 1 for code in codes)
    nodes, turns, used = (numpy.zeros((classes, depth), "int64") for _ in range(3))
    for row, code in enumerate(codes):
        for bit in range(code.bit_length() - 1):
            nodes[row, bit], turns[row, bit], used[row, bit] = (code >> (bit + 1)) - 1, (code >> bit) & 1, 1
    return nodes, turns, used


def hsigmoid(input, label, num_classes, param_attr=None, bias_attr=None, name=None, path_table=None, path_code=None,
             is_custom=False, is_sparse=False):
    """Classes are leaves of a binary tree; the loss is that of the turns on the way to the label: [N, 1]. Trees of the
    user are refused."""
    if is_custom or path_table is not None or path_code is not None:
        raise native.UnsupportedError("hsigmoid: trees of the user (path_table, path_code, is_custom) are not here")
    layer = name or unique_name.generate("hsigmoid")
    weight = _param.make([num_classes - 1, input.shape[-1]], param_attr, layer)
    bias = _param.make([num_classes - 1, 1], bias_attr, layer, is_bias=True)
    label = T.reshape(label, [-1])
    nodes, turns, used = (T.gather(T.assign(table), label) for table in _tree(int(num_classes)))
    logits = T.sum(T.multiply(F.embedding(nodes, weight, sparse=is_sparse), T.unsqueeze(input, 1)), -1)
    if bias is not None:
        logits = T.add(logits, T.squeeze(F.embedding(nodes, bias, sparse=is_sparse), -1))
    losses = F.binary_cross_entropy_with_logits(logits, T.cast(turns, "float32"), reduction="none")
    return T.sum(T.multiply(losses, T.cast(used, "float32")), 1, keepdim=True)


def mean_iou(input, label, num_classes):
    """(mean over the classes that occur of intersection / union, wrong per class, correct per class)."""
    predicted, right = (T.one_hot(T.reshape(ids, [-1]), num_classes) for ids in (input, label))
    correct = T.sum(T.multiply(predicted, right), 0)
    union = T.subtract(T.add(T.sum(predicted, 0), T.sum(right, 0)), correct)
    there = T.cast(T.greater_than(union, T.zeros_like(union)), "float32")
    share = T.divide(correct, T.maximum(union, T.ones_like(union)))
    mean = T.divide(T.sum(T.multiply(share, there)), T.sum(there))
    return mean, T.cast(T.subtract(union, correct), "int32"), T.cast(correct, "int32")


# ---- layers ----
def lrn(input, n=5, k=1.0, alpha=1e-4, beta=0.75, name=None, data_format="NCHW"):
    """2.0 takes the mean of n squares where 1.x takes their sum."""
    return F.local_response_norm(input, n, alpha * n, beta, k, data_format, name)


def bilinear_tensor_product(x, y, size, act=None, name=None, param_attr=None, bias_attr=None):
    """out[:, k] = x @ W[k] @ y + b[k]."""
    layer = name or unique_name.generate("bilinear_tensor_product")
    weight = _param.make([size, x.shape[1], y.shape[1]], param_attr, layer)
    bias = _param.make([1, size], bias_attr, layer, is_bias=True)
    return _math.activate(F.bilinear(x, y, weight, bias), act)


def add_position_encoding(input, alpha, beta, name=None):
    """alpha * x + beta * waves that say the place: x is [batch, length, width]."""
    _, length, width = input.shape
    _known("add_position_encoding", (length, width))
    half = width // 2
    places = numpy.arange(length)[:, None] / 10000.0 ** (numpy.arange(half) / max(half - 1, 1) if half > 1 else numpy.ones(1))
    waves = numpy.concatenate([numpy.sin(places), numpy.cos(places)], 1)[None].astype("float32")
    return T.add(T.scale(input, alpha), T.assign(beta * waves), name)


def lstm_unit(x_t, hidden_t_prev, cell_t_prev, forget_bias=0.0, param_attr=None, bias_attr=None, name=None):
    """One step of an LSTM: (hidden, cell)."""
    gates = S.fc(T.concat([x_t, hidden_t_prev], 1), 4 * cell_t_prev.shape[1], 1, param_attr, bias_attr, name=name)
    i, f, o, g = T.split(gates, 4, 1)
    kept = T.multiply(F.sigmoid(T.scale(f, 1.0, float(forget_bias))), cell_t_prev)
    cell = T.add(kept, T.multiply(F.sigmoid(i), T.tanh(g)))
    return T.multiply(F.sigmoid(o), T.tanh(cell)), cell


def fsp_matrix(x, y):
    """Products of all pairs of channels, in the mean of all places: [batch, channels of x, channels of y]."""
    _known("fsp_matrix", (*x.shape[1:], *y.shape[1:]))
    flat = [T.reshape(v, [-1, v.shape[1], v.shape[2] * v.shape[3]]) for v in (x, y)]
    return T.scale(T.matmul(flat[0], flat[1], transpose_y=True), 1.0 / (x.shape[2] * x.shape[3]))


def crop(x, shape=None, offsets=None, name=None):
    """`shape` may be a variable that has it."""
    if isinstance(shape, _graph.Variable):
        shape = shape.shape
    return T.crop(x, list(shape), list(offsets) if offsets is not None else None, name)


def pad_constant_like(x, y, pad_value=0.0, name=None):
    """y, padded behind to the shape of x."""
    _known("pad_constant_like", (*x.shape, *y.shape))
    paddings = [n for a, b in zip(x.shape, y.shape) for n in (0, a - b)]
    return _graph.call("pad", {"x": y}, {"paddings": paddings, "value": float(pad_value)}, name)


def data_norm(input, act=None, epsilon=1e-05, param_attr=None, data_layout="NCHW", in_place=False, name=None,
              moving_mean_name=None, moving_variance_name=None, do_model_average_for_mean_and_var=True, slot_dim=-1,
              sync_stats=False, summary_decay_rate=0.9999999, enable_scale_and_shift=False):
    """Columns with mean 0 and deviation 1, by sums over all batches so far. param_attr may hold where the sums begin:
    batch_size, batch_sum, batch_square. Workers keep sums of their own (sync_stats=True is refused)."""
    if slot_dim > 0 or sync_stats or enable_scale_and_shift:
        raise native.UnsupportedError("data_norm: slot_dim, sync_stats and enable_scale_and_shift are not here")
    start = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4, **(param_attr if isinstance(param_attr, dict) else {})}
    width, layer = input.shape[-1], name or unique_name.generate("data_norm")
    sums = {key: T.creation.create_global_var([width], start[key], "float32", True, name=f"{layer}.{key}") for key in start}
    for total in sums.values():
        total.stop_gradient = True
    mean = T.divide(sums["batch_sum"], sums["batch_size"])
    centred = T.subtract(input, mean)
    out = T.multiply(centred, T.sqrt(T.divide(sums["batch_size"], sums["batch_square"])))
    with input.program.update_ops():
        rows = T.sum(T.ones_like(input), 0)
        new = {"batch_size": rows, "batch_sum": T.sum(input, 0),
               "batch_square": T.add(T.sum(T.square(centred), 0), T.scale(rows, epsilon))}
        for key, value in new.items():
            T.assign(T.add(T.scale(sums[key], summary_decay_rate), value), sums[key])
    return _math.activate(out, act)


def _in_order(value):
    """Different elements in the order in which they come, which of them every element is, and how often each is there."""
    found, first, index, count = numpy.unique(value.reshape(-1), True, True, True)
    order = numpy.argsort(first)
    place = numpy.empty_like(order)
    place[order] = numpy.arange(len(order))
    return [found[order], place[index.reshape(-1)], count[order]]


def unique_with_counts(x, dtype="int32"):
    """(different elements in the order in which they come, which of them every element is, how often each is there). For
    inference: no gradient goes through it."""
    return tuple(_between.value_step("unique_with_counts", _in_order, [x], [(x.dtype, [-1]), (dtype, [-1]), (dtype, [-1])]))


def unique(x, dtype="int32"):
    """(different elements in the order in which they come, which of them every element is)."""
    return unique_with_counts(x, dtype)[:2]


def where(condition, x=None, y=None, name=None):
    """Places where the condition holds, [count, rank]; with x and y, x where it holds and y elsewhere."""
    return T.nonzero(condition) if x is None and y is None else T.where(condition, x, y, name)
