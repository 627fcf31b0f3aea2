"""Layers and functions with the arguments of 1.x."""
import math

import numpy

from paddle import _graph
from paddle import tensor as T
from paddle._graph import as_list, call
from paddle._native import native
from paddle.nn import functional as F
from paddle.nn.functional import conv as _conv
from paddle.static import nn as S
from paddle.tensor import math as _math
from paddle.utils import unique_name

conv2d, conv2d_transpose, batch_norm = S.conv2d, S.conv2d_transpose, S.batch_norm
layer_norm, group_norm, instance_norm = S.layer_norm, S.group_norm, S.instance_norm


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    return S.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """ids [..., 1] -> [..., width]: the last dimension of length 1 goes."""
    return S._embedding_of_columns(input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def prelu(x, mode, param_attr=None, name=None):
    return S.prelu(x, mode, param_attr, name=name)


def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    mode = "downscale_in_infer" if dropout_implementation == "downgrade_in_infer" else dropout_implementation
    options = {"p": float(dropout_prob), "is_test": bool(is_test), "mode": mode, "seed": int(seed or 0)}
    return _graph.layer_call(native.dropout, x, options, name or unique_name.generate("dropout"))


def pool2d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
           ceil_mode=False, name=None, exclusive=True, data_format="NCHW"):
    if pool_type not in ("max", "avg"):
        raise native.InvalidArgumentError(f"pool2d: pool_type must be 'max' or 'avg', got {pool_type!r}")
    if global_pooling:
        pool_size, pool_stride, pool_padding = 1, 1, 0
    elif pool_size == -1:
        raise native.InvalidArgumentError("pool2d: pool_size must be given unless global_pooling is set")
    return _conv.pool(input, pool_type, pool_size, pool_stride, pool_padding, ceil_mode, exclusive, global_pooling,
                      data_format, name)


def adaptive_pool2d(input, pool_size, pool_type="max", require_index=False, name=None):
    _conv._no_mask("adaptive_pool2d", require_index)
    return _conv._adaptive(input, pool_type, pool_size, "NCHW", name)


# ---- arithmetic ----
def _elementwise(function):
    def layer(x, y, axis=-1, act=None, name=None):
        return _math.activate(function(x, y, axis, name), act)
    return layer


elementwise_add = _elementwise(_math._add)
elementwise_sub = _elementwise(_math._subtract)
elementwise_mul = _elementwise(_math._multiply)
elementwise_div = _elementwise(_math._divide)
elementwise_max = _elementwise(_math._maximum)
elementwise_min = _elementwise(_math._minimum)
elementwise_pow = _elementwise(_math._pow)
elementwise_mod = _elementwise(_math._mod)
elementwise_floordiv = _elementwise(_math._floordiv)


def _reduce(op):
    def layer(input, dim=None, keep_dim=False, name=None):
        return _math._reduce(op, input, dim, keep_dim, name)
    layer.__name__ = op
    return layer


reduce_sum, reduce_mean, reduce_max = _reduce("reduce_sum"), _reduce("reduce_mean"), _reduce("reduce_max")
reduce_min, reduce_prod = _reduce("reduce_min"), _reduce("reduce_prod")
reduce_all, reduce_any = _reduce("reduce_all"), _reduce("reduce_any")


def mean(x, name=None):
    return T.mean(x, name=name)


def sum(x):
    return T.add_n(as_list(x))


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1, name=None):
    """Both seen as matrices, cut after so many dimensions."""
    rows, columns = list(x.shape[:x_num_col_dims]), list(y.shape[y_num_col_dims:])
    inner = 1
    for d in y.shape[:y_num_col_dims]:
        inner *= d
    width = 1
    for d in columns:
        width *= d
    across = x.shape[x_num_col_dims:]
    if all(d > 0 for d in across) and inner > 0 and math.prod(across) != inner:
        raise native.InvalidArgumentError(
            f"mul: x {list(x.shape)} cut after {x_num_col_dims} dimensions has {math.prod(across)} columns, but y {list(y.shape)} cut "
            f"after {y_num_col_dims} has {inner} rows; these must be equal")
    if len(x.shape) > 2 or x_num_col_dims != 1:
        x = T.reshape(x, [-1, inner])
    if len(y.shape) > 2 or y_num_col_dims != 1:
        y = T.reshape(y, [inner, width])
    out = T.matmul(x, y, name=name)
    if len(rows) == 1 and len(columns) == 1:
        return out
    return T.reshape(out, [-1 if d < 0 else d for d in rows + columns])


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0, name=None):
    return call("matmul", {"x": x, "y": y}, {"transpose_x": bool(transpose_x), "transpose_y": bool(transpose_y),
                                             "alpha": float(alpha)}, name)


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    return T.scale(x, scale, bias, bias_after_scale, act, name)


def pow(x, factor=1.0, name=None):
    return T.pow(x, factor, name)


def clip(x, min, max, name=None):
    return T.clip(x, min, max, name)


def clip_by_norm(x, max_norm, name=None):
    return call("clip_by_norm", {"x": x}, {"max_norm": float(max_norm)}, name)


def l2_normalize(x, axis, epsilon=1e-12, name=None):
    total = T.sum(T.square(x), axis, keepdim=True)
    return T.divide(x, T.sqrt(T.clip(total, epsilon, None)), name)


def cos_sim(X, Y):
    inner = T.sum(T.multiply(X, Y), -1, keepdim=True)
    lengths = T.multiply(T.sum(T.square(X), -1, keepdim=True), T.sum(T.square(Y), -1, keepdim=True))
    return T.divide(inner, T.sqrt(lengths), name=unique_name.generate("cos_sim"))


# ---- losses ----
def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """Of probabilities: one loss per example, in the shape of the label: [N, 1], or [N] for labels [N]."""
    shape = label.shape
    if not soft_label:
        label = F.loss._with_class_axis(input, label, -1)
    losses = F.loss._class_losses(input, label, ignore_index, soft_label, -1, False)
    return T.squeeze(losses, -1) if not soft_label and len(shape) == len(input.shape) - 1 else losses


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, numeric_stable_mode=True,
                               return_softmax=False, axis=-1):
    return F.softmax_with_cross_entropy(logits, label, soft_label, ignore_index, numeric_stable_mode, return_softmax,
                                        axis)


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    return call("sigmoid_cross_entropy", {"x": x, "label": label},
                {"ignore_index": int(ignore_index), "normalize": bool(normalize)}, name)


def square_error_cost(input, label):
    return F.square_error_cost(input, label)


def log_loss(input, label, epsilon=1e-4, name=None):
    return F.log_loss(input, label, epsilon, name)


def huber_loss(input, label, delta):
    return call("smooth_l1_loss", {"x": input, "label": label}, {"delta": float(delta)})


def mse_loss(input, label):
    return T.mean(F.square_error_cost(input, label))


def kldiv_loss(x, target, reduction="mean", name=None):
    return F.kl_div(x, target, reduction, name)


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    return T.cast(F.label_smooth(label, prior_dist, epsilon, name), dtype)


def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=None):
    """One loss per row, [N, 1]."""
    square = float(sigma or 1.0) ** 2
    difference = T.subtract(x, y)
    if inside_weight is not None:
        difference = T.multiply(difference, inside_weight)
    zero = T.zeros_like(difference)
    loss = T.scale(call("smooth_l1_loss", {"x": difference, "label": zero}, {"delta": 1.0 / square}), square)
    if outside_weight is not None:
        loss = T.multiply(loss, outside_weight)
    return T.sum(T.flatten(loss, 1, -1), 1, keepdim=True)


def rank_loss(label, left, right, name=None):
    """log(1 + exp(left - right)) - label * (left - right)."""
    difference = T.subtract(left, right)
    return T.subtract(F.softplus(difference), T.multiply(label, difference), name=name)


def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """max(0, margin - label * (left - right))."""
    return F.relu(T.scale(T.multiply(label, T.subtract(left, right)), -1.0, float(margin)), name)


dice_loss = F.dice_loss


# ---- activations ----
def softmax(input, use_cudnn=True, name=None, axis=-1):
    return F.softmax(input, axis, name=name)


def log_softmax(input, axis=-1, dtype=None, name=None):
    return F.log_softmax(input, axis, dtype, name)


def leaky_relu(x, alpha=0.02, name=None):
    return F.leaky_relu(x, alpha, name)


def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    return F.hardsigmoid(x, slope, offset, name)


def swish(x, beta=1.0, name=None):
    if beta == 1:
        return F.swish(x, name)
    return T.multiply(x, F.sigmoid(T.scale(x, beta)), name=name)


def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    if (threshold, scale, offset) == (6.0, 6.0, 3.0):
        return F.hardswish(x, name)
    return T.multiply(x, T.scale(T.clip(T.scale(x, 1.0, offset), 0.0, threshold), 1.0 / scale), name=name)


def soft_relu(x, threshold=40.0, name=None):
    return F.softplus(T.clip(x, -threshold, threshold), name=name)


def brelu(x, t_min=0.0, t_max=24.0, name=None):
    return T.clip(x, t_min, t_max, name)


relu, elu, gelu, sigmoid, tanh = F.relu, F.elu, F.gelu, F.sigmoid, F.tanh
selu, softsign, logsigmoid, mish = F.selu, F.softsign, F.log_sigmoid, F.mish
thresholded_relu, hard_shrink, tanh_shrink = F.thresholded_relu, F.hardshrink, F.tanhshrink
stanh = T.stanh


def relu6(x, threshold=6.0, name=None):
    return T.clip(x, 0.0, float(threshold), name)


def maxout(x, groups, name=None, axis=1):
    return F.maxout(x, groups, axis, name)


def softplus(x, name=None):
    return F.softplus(x, name=name)


def softshrink(x, alpha=0.5):
    return F.softshrink(x, alpha)


erf, acos, asin, atan = T.erf, T.acos, T.asin, T.atan

# ---- shapes ----
scatter_nd, pixel_shuffle = T.scatter_nd, F.pixel_shuffle
transpose, stack, unstack, slice = T.transpose, T.stack, T.unstack, T.slice
shape, rank = T.shape, T.rank
unbind, multiplex, shard_index = T.unbind, T.multiplex, T.shard_index


def triu(input, diagonal=0, name=None):
    return T.triu(input, diagonal, name)


def tril(input, diagonal=0, name=None):
    return T.tril(input, diagonal, name)


def size(input):
    return T.numel(input)


def scatter_nd_add(ref, index, updates, name=None):
    return T.scatter_nd_add(ref, index, updates, name)


def gather_nd(input, index, name=None):
    return T.gather_nd(input, index, name)


def strided_slice(input, axes, starts, ends, strides):
    return T.strided_slice(input, axes, starts, ends, strides)


def expand_as(x, target_tensor, name=None):
    """x repeated so often that it has the shape of the other."""
    return T.expand_as(x, target_tensor, name)


def increment(x, value=1.0, in_place=True):
    return T.increment(x, value) if in_place else T.scale(x, 1.0, float(value))


def reshape(x, shape, actual_shape=None, act=None, inplace=False, name=None):
    """actual_shape, where it is given, counts instead of shape."""
    return _math.activate(T.reshape(x, shape if actual_shape is None else actual_shape, name), act)


def flatten(x, axis=1, name=None):
    """A matrix: the dimensions before `axis`, and the rest."""
    return call("flatten", {"x": x}, {"axis": int(axis)}, name)


def squeeze(input, axes, name=None):
    return T.squeeze(input, axes or None, name)


def unsqueeze(input, axes, name=None):
    return T.unsqueeze(input, axes, name)


def split(input, num_or_sections, dim=-1, name=None):
    return T.split(input, num_or_sections, dim, name)


def expand(x, expand_times, name=None):
    """Repeats x so many times along each dimension."""
    return T.tile(x, expand_times, name)


def gather(input, index, overwrite=True):
    """Gradients of a row that is taken twice are added, whatever overwrite says."""
    return T.gather(input, index)


def scatter(input, index, updates, name=None, overwrite=True):
    return T.scatter(input, index, updates, overwrite, name)


def pad(x, paddings, pad_value=0.0, name=None):
    return call("pad", {"x": x}, {"paddings": [int(p) for p in paddings], "value": float(pad_value)}, name)


def pad2d(input, paddings=(0, 0, 0, 0), mode="constant", pad_value=0.0, data_format="NCHW", name=None):
    top, bottom, left, right = paddings
    return F.pad(input, [left, right, top, bottom], mode, pad_value, data_format, name)


def affine_channel(x, scale=None, bias=None, data_layout="NCHW", name=None, act=None):
    """x * scale + bias, one of each per channel."""
    shape = [1, -1, 1, 1] if data_layout == "NCHW" and len(x.shape) == 4 else [1, -1]
    shape = shape if len(x.shape) == len(shape) else [1] * (len(x.shape) - 1) + [-1]
    return _math.activate(T.add(T.multiply(x, T.reshape(scale, shape)), T.reshape(bias, shape), name), act)


def space_to_depth(x, blocksize, name=None):
    """Blocks of blocksize x blocksize places become channels, and the picture smaller."""
    channels, height, width = x.shape[1:]
    size = int(blocksize)
    blocks = T.reshape(x, [-1, channels, height // size, size, width // size, size])
    return T.reshape(T.transpose(blocks, [0, 3, 5, 1, 2, 4]), [-1, channels * size * size, height // size, width // size],
                     name=name)


def temporal_shift(x, seg_num, shift_ratio=0.25, name=None):
    """Pictures of clips of seg_num: a share of the channels comes from the picture before, as many from the one after."""
    channels, height, width = x.shape[1:]
    clips, moved = T.reshape(x, [-1, seg_num, channels, height, width]), int(channels * shift_ratio)
    padded = call("pad", {"x": clips}, {"paddings": [0, 0, 1, 1] + [0] * 6, "value": 0.0})
    parts = [T.slice(padded, [1, 2], [0, 0], [seg_num, moved]), T.slice(padded, [1, 2], [2, moved], [seg_num + 2, 2 * moved]),
             T.slice(clips, [2], [2 * moved], [channels])]
    return T.reshape(T.concat(parts, 2), [-1, channels, height, width], name=name)


def image_resize_short(input, out_short_len, resample="BILINEAR"):
    """The shorter side gets this length, the other one in proportion."""
    height, width = input.shape[2:]
    if height < 0 or width < 0:
        raise native.UnsupportedError("image_resize_short: the height and width of the pictures must be known")
    short = min(height, width)
    return image_resize(input, [int(side * out_short_len / short + 0.5) for side in (height, width)], resample=resample)


def shuffle_channel(x, group, name=None):
    """Channels 0, C/group, 2 C/group, ..., 1, C/group + 1, ..."""
    channels, height, width = x.shape[1:]
    cells = T.transpose(T.reshape(x, [-1, group, channels // group, height, width]), [0, 2, 1, 3, 4])
    return T.reshape(cells, [-1, channels, height, width], name=name)


def one_hot(input, depth, allow_out_of_range=False):
    """ids [..., 1] -> [..., depth]. An id that is not below depth is an error; with allow_out_of_range it gives
    zeros."""
    if allow_out_of_range:
        ids = T.squeeze(input, -1) if input.shape and input.shape[-1] == 1 else input
        places = T.assign(numpy.arange(int(depth), dtype=str(ids.dtype)))
        return T.cast(T.equal(T.unsqueeze(ids, -1), places), "float32")
    if input.shape and input.shape[-1] == 1:
        input = T.squeeze(input, -1)
    return T.one_hot(input, depth)


def topk(input, k, name=None):
    return T.topk(input, k, name=name)


def crop_tensor(x, shape=None, offsets=None, name=None):
    offsets = offsets or [0] * len(x.shape)
    axes = [i for i, d in enumerate(shape) if d >= 0]
    return T.slice(x, axes, [offsets[i] for i in axes], [offsets[i] + shape[i] for i in axes], name)


def uniform_random(shape, dtype="float32", min=-1.0, max=1.0, seed=0, name=None):
    return T.uniform(shape, dtype, min, max, seed, name)


def gaussian_random(shape, mean=0.0, std=1.0, seed=0, dtype="float32", name=None):
    return T.random._random("gaussian", shape, mean, std, seed, dtype, name)


def _no_actual_shape(what, actual_shape):
    if actual_shape is not None:
        raise native.UnsupportedError(f"{what}: actual_shape is known only when it runs; give out_shape or scale")


def resize_nearest(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True,
                   data_format="NCHW"):
    _no_actual_shape("resize_nearest", actual_shape)
    return F.interpolate(input, out_shape, scale, "nearest", align_corners, data_format=data_format, name=name)


def resize_bilinear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                    data_format="NCHW"):
    _no_actual_shape("resize_bilinear", actual_shape)
    return F.interpolate(input, out_shape, scale, "bilinear", align_corners, align_mode, data_format, name)


def image_resize(input, out_shape=None, scale=None, name=None, resample="BILINEAR", actual_shape=None,
                 align_corners=True, align_mode=1, data_format="NCHW"):
    _no_actual_shape("image_resize", actual_shape)
    return F.interpolate(input, out_shape, scale, resample.lower(), align_corners, align_mode, data_format, name)


def autoincreased_step_counter(counter_name=None, begin=1, step=1):
    """begin, begin + step, ...: one value per run."""
    from paddle.tensor.creation import create_global_var
    counter = create_global_var([1], begin - step, "int64", True, name=counter_name or "@STEP_COUNTER@")
    return T.increment(counter, step)


def py_func(func, x, out, backward_func=None, skip_vars_in_backward_input=None):
    from paddle._refuse import refuse
    raise refuse("paddle.fluid.layers.py_func", "an op in C++: docs/add-an-op.md")


__all__ = [n for n, value in list(globals().items()) if not n.startswith("_") and callable(value) and
           n not in ("as_list", "call")]


def __getattr__(name):
    """In 1.x this module had nearly all of the layers."""
    from paddle.fluid import layers
    return getattr(layers, name)
