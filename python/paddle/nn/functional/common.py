"""Linear maps, dropout, embedding, padding."""
from paddle._graph import as_list, call, layer_call
from paddle._native import native
from paddle.tensor import creation, manipulation, math
from paddle.utils import unique_name

__all__ = ["linear", "dropout", "dropout2d", "dropout3d", "alpha_dropout", "embedding", "one_hot", "pad",
           "cosine_similarity", "label_smooth", "interpolate", "upsample", "bilinear", "unfold", "normalize",
           "sequence_mask", "pixel_shuffle"]

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


def normalize(x, p=2, axis=1, epsilon=1e-12, name=None):
    length = math.norm(x, p, axis, True)
    return math.divide(x, math.clip(length, epsilon, None), name)


def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    if prior_dist is not None:
        return math.add(math.scale(label, 1.0 - epsilon), math.scale(prior_dist, epsilon), name)
    return math.scale(label, 1.0 - epsilon, epsilon / label.shape[-1], name=name)


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0, data_format="NCHW",
                name=None):
    """Enlarges images by a whole factor, each pixel repeated."""
    height, width = x.shape[2:4] if data_format == "NCHW" else x.shape[1:3]
    if size is not None:
        size = as_list(size)
        factors = [size[0] / height, size[1] / width]
    else:
        factors = as_list(scale_factor)
        factors = factors * 2 if len(factors) == 1 else factors
    if mode != "nearest" or data_format != "NCHW" or any(not float(f).is_integer() or f < 1 for f in factors):
        raise native.UnsupportedError("interpolate: only mode='nearest' by whole factors on NCHW images is here")
    fh, fw = int(factors[0]), int(factors[1])
    channels = x.shape[1]
    cells = manipulation.reshape(x, [-1, channels, height, 1, width, 1])
    return manipulation.reshape(manipulation.tile(cells, [1, 1, 1, fh, 1, fw]),
                                [-1, channels, height * fh, width * fw], name)


upsample = interpolate


def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    r, (channels, height, width) = int(upscale_factor), x.shape[1:4]
    cells = manipulation.reshape(x, [-1, channels // (r * r), r, r, height, width])
    return manipulation.reshape(manipulation.transpose(cells, [0, 1, 4, 2, 5, 3]),
                                [-1, channels // (r * r), height * r, width * r], name)


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """1 where the position is below the length."""
    if maxlen is None:
        raise native.UnsupportedError("sequence_mask: maxlen must be given, it is a shape")
    from paddle.tensor import logic
    places = creation.arange(0, int(maxlen), 1, x.dtype)
    return manipulation.cast(logic.less_than(places, manipulation.unsqueeze(x, -1)), dtype)


def bilinear(x1, x2, weight, bias=None, name=None):
    """out[n, k] = x1[n] @ weight[k] @ x2[n] + bias[k]."""
    left = math.matmul(manipulation.unsqueeze(x1, [1, 2]), weight)  # [N, K, 1, D2]
    out = math.sum(math.multiply(manipulation.squeeze(left, 2), manipulation.unsqueeze(x2, 1)), -1)
    return out if bias is None else math.add(out, bias, name)


def unfold(*args, **kwargs):
    raise native.UnsupportedError("unfold (im2col) is not here; nearest: conv2d")
