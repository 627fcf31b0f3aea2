"""Linear maps, dropout, embedding, padding."""
import numpy

from paddle._graph import Variable, as_list, call, layer_call
from paddle._native import native
from paddle.nn.functional.conv import in_nchw
from paddle import tensor as T
from paddle.nn.functional import conv as _conv
from paddle.tensor import creation, manipulation, math
from paddle.utils import unique_name

__all__ = ["linear", "dropout", "dropout2d", "dropout3d", "alpha_dropout", "embedding", "one_hot", "pad",
           "cosine_similarity", "pairwise_distance", "label_smooth", "interpolate", "upsample", "bilinear", "unfold",
           "normalize", "sequence_mask", "pixel_shuffle"]

one_hot = manipulation.one_hot


def linear(x, weight, bias=None, name=None):
    """x @ weight + bias; weight [in, out]."""
    return call("fc", {"x": x, "w": weight, "bias": bias}, {"num_flatten_dims": len(x.shape) - 1}, name) \
        if len(x.shape) > 1 else math.matmul(x, weight, name=name)


def dropout(x, p=0.5, axis=None, training=True, mode="upscale_in_train", name=None):
    """Sets a share p of the elements to 0, other ones in every step."""
    if axis is not None:
        raise native.UnsupportedError("dropout: axis must be None; whole dimensions cannot be dropped")
    options = {"p": float(p), "is_test": not training, "mode": mode}
    return layer_call(native.dropout, x, options, name or unique_name.generate("dropout"))


def dropout2d(x, p=0.5, training=True, data_format="NCHW", name=None):
    if not training or p == 0:
        return x
    raise native.UnsupportedError("dropout2d drops whole channels, which is not here; nearest: dropout")


dropout3d = alpha_dropout = dropout2d


def embedding(x, weight, padding_idx=None, sparse=False, name=None):
    """Rows of `weight`; the result has the shape of x with the width of a row appended."""
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return call("embedding", {"ids": x, "w": weight},
                {"padding_idx": -1 if padding_idx is None else int(padding_idx), "sparse": bool(sparse)}, name)


def pad(x, pad, mode="constant", value=0.0, data_format="NCHW", name=None):
    """`pad` counts from the last dimension: [left, right, top, bottom], or before and after of every dimension."""
    rank = len(x.shape)
    numbers = [int(n) for n in pad] if isinstance(pad, (list, tuple)) else [int(pad)] * (2 * (rank - 2))
    if len(numbers) == 2 * rank:
        paddings = numbers
    else:
        pairs = [numbers[i:i + 2] for i in range(0, len(numbers), 2)][::-1]
        last = [[0, 0]] if data_format in ("NHWC", "NLC", "NDHWC") else []
        pairs = [[0, 0]] * (rank - len(pairs) - len(last)) + pairs + last
        paddings = [n for pair in pairs for n in pair]
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge"}
    if mode not in modes:
        raise native.InvalidArgumentError(f"pad: mode must be one of {' '.join(modes)}, got {mode!r}")
    return call("pad", {"x": x}, {"paddings": paddings, "value": float(value), "mode": modes[mode]}, name)


def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    inner = math.sum(math.multiply(x1, x2), axis)
    lengths = math.multiply(math.sum(math.square(x1), axis), math.sum(math.square(x2), axis))
    return math.divide(inner, math.sqrt(math.clip(lengths, eps * eps, None)))


def pairwise_distance(x, y, p=2.0, epsilon=1e-6, keepdim=False, name=None):
    """The p-norm of the difference of the rows."""
    return math.norm(math.scale(math.subtract(x, y), 1.0, epsilon), p, -1, keepdim, name)


def normalize(x, p=2, axis=1, epsilon=1e-12, name=None):
    length = math.norm(x, p, axis, True)
    return math.divide(x, math.clip(length, epsilon, None), name)


def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    if prior_dist is not None:
        return math.add(math.scale(label, 1.0 - epsilon), math.scale(prior_dist, epsilon), name)
    return math.scale(label, 1.0 - epsilon, epsilon / label.shape[-1], name=name)


def _weights(source, target, scale, mode, align_corners, align_mode):
    """[target, source]: how much every old pixel of a line gives to every new one."""
    out, places = numpy.zeros((target, source), "float32"), numpy.arange(target)
    if align_corners:
        at = places * ((source - 1) / (target - 1) if target > 1 else 0.0)
    else:
        ratio = 1.0 / scale if scale else source / target
        at = places * ratio if mode == "nearest" or align_mode == 1 else (places + 0.5) * ratio - 0.5
    at = numpy.clip(at, 0, source - 1)
    if mode == "nearest":
        out[places, numpy.floor(at + 0.5 * align_corners).astype("int64")] = 1
        return out
    low = numpy.floor(at).astype("int64")
    numpy.add.at(out, (places, low), 1 - (at - low))
    numpy.add.at(out, (places, numpy.minimum(low + 1, source - 1)), at - low)
    return out


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW",
                name=None):
    """Images of another size: a product with the weights of both directions."""
    if mode not in ("nearest", "bilinear") or len(x.shape) != 4:
        raise native.UnsupportedError(
            f"interpolate: mode={mode!r} of {list(x.shape)}: 'nearest' and 'bilinear' of images are here")
    if data_format == "NHWC":
        out = interpolate(manipulation.transpose(x, [0, 3, 1, 2]), size, scale_factor, mode, align_corners, align_mode)
        return manipulation.transpose(out, [0, 2, 3, 1], name)
    height, width = x.shape[2:4]
    if height < 0 or width < 0:
        raise native.UnsupportedError(f"interpolate: height and width of '{x.name}' {list(x.shape)} must be known")
    factors = as_list(scale_factor) * (1 if len(as_list(scale_factor)) == 2 else 2)
    if size is not None:
        factors, (new_height, new_width) = [None, None], [int(n) for n in as_list(size)]
    elif scale_factor is not None:
        new_height, new_width = int(height * factors[0]), int(width * factors[1])
    else:
        raise ValueError("interpolate: give size or scale_factor")
    rows = _weights(height, new_height, factors[0], mode, align_corners, align_mode)
    columns = _weights(width, new_width, factors[1], mode, align_corners, align_mode)
    wide = math.matmul(x, creation.assign(numpy.ascontiguousarray(columns.T)))
    return math.matmul(creation.assign(rows), wide, name=name)


upsample = interpolate


def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    if data_format != "NCHW":
        return in_nchw(x, data_format, lambda image: pixel_shuffle(image, upscale_factor, name=name))
    r, (channels, height, width) = int(upscale_factor), x.shape[1:4]
    cells = manipulation.reshape(x, [-1, channels // (r * r), r, r, height, width])
    return manipulation.reshape(manipulation.transpose(cells, [0, 1, 4, 2, 5, 3]),
                                [-1, channels // (r * r), height * r, width * r], name)


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """1 where the position is below the length. maxlen may be paddle.shape(y)[i]; without it, it is the longest of the
    lengths of an input with lod_level=1."""
    from paddle.tensor import logic
    if maxlen is None:
        from paddle.fluid.layers.sequence import steps_of
        places = steps_of("sequence_mask: give maxlen", x)
    else:
        places = creation.arange(0, maxlen if isinstance(maxlen, Variable) else int(maxlen), 1, x.dtype)
    return manipulation.cast(logic.less_than(places, manipulation.unsqueeze(x, -1)), dtype)


def bilinear(x1, x2, weight, bias=None, name=None):
    """out[n, k] = x1[n] @ weight[k] @ x2[n] + bias[k]."""
    left = math.matmul(manipulation.unsqueeze(x1, [1, 2]), weight)  # [N, K, 1, D2]
    out = math.sum(math.multiply(manipulation.squeeze(left, 2), manipulation.unsqueeze(x2, 1)), -1)
    return out if bias is None else math.add(out, bias, name)


def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """[N, C, H, W] -> [N, C * kernel, places]: the pixels that a convolution would see at each place."""
    kernel, step = _conv.pair(kernel_sizes, "kernel_sizes"), _conv.pair(strides, "strides")
    far, ends = _conv.pair(dilations, "dilations"), paddings
    if isinstance(ends, int) or len(ends) == 2:
        rows, columns = _conv.pair(ends, "paddings")
        ends = [rows, columns, rows, columns]
    top, left, bottom, right = ends
    x = pad(x, [left, right, top, bottom])
    if x.shape[2] < 0 or x.shape[3] < 0:
        raise native.UnsupportedError("unfold: height and width must be known")
    counts = [(x.shape[2 + d] - far[d] * (kernel[d] - 1) - 1) // step[d] + 1 for d in (0, 1)]
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            starts = [i * far[0], j * far[1]]
            parts.append(T.strided_slice(x, [2, 3], starts, [s + n * (c - 1) + 1 for s, n, c in zip(starts, step, counts)], step))
    return T.reshape(T.stack(parts, 2), [-1 if x.shape[0] < 0 else x.shape[0], x.shape[1] * len(parts), counts[0] * counts[1]], name=name)
