"""Convolutions and pooling on volumes [N, C, D, H, W]. A kernel of depth k over C channels is one over the C * k channels of
k pictures that lie behind each other; pooling over depth and over pictures follow each other."""
from paddle._graph import as_list
from paddle._native import native
from paddle.nn.functional import conv
from paddle.nn.functional.common import pad
from paddle.tensor import manipulation

__all__ = ["conv3d", "max_pool3d", "avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d"]


def triple(value, what="size"):
    """3 means 3x3x3."""
    values = [int(v) for v in as_list(value)]
    if len(values) == 1:
        values *= 3
    if len(values) != 3:
        raise native.InvalidArgumentError(f"{what} takes one or three numbers, got {list(value)}")
    return values


def _padding(value, data_format, sizes, kernel, stride, dilation):
    """Before and after of depth, height and width: from a number, [d, h, w], six numbers, one pair per dimension, "SAME"
    or "VALID"."""
    if isinstance(value, str):
        if value.upper() not in ("SAME", "VALID"):
            raise native.InvalidArgumentError(f"padding must be numbers, 'SAME' or 'VALID', got {value!r}")
        if value.upper() == "VALID":
            return [0] * 6
        missing = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
                   for n, k, s, d in zip(sizes, kernel, stride, dilation)]
        return [part for m in missing for part in (m // 2, m - m // 2)]
    values = as_list(value)
    if values and isinstance(values[0], (list, tuple)):
        spatial = values[2:5] if data_format == "NCDHW" else values[1:4]
        return [int(n) for both in spatial for n in both]
    values = [int(v) for v in values]
    if len(values) == 6:
        return values
    return [n for n in triple(values, "padding") for _ in range(2)]


def _in_ncdhw(x, data_format, function):
    if data_format not in ("NCDHW", "NDHWC"):
        raise native.InvalidArgumentError(f"data_format must be 'NCDHW' or 'NDHWC', got {data_format!r}")
    if len(x.shape) != 5 or min(x.shape[1:]) < 0:
        raise native.InvalidArgumentError(f"'{x.name}' of shape {list(x.shape)} must be a volume, [N, C, D, H, W], and only N unknown")
    if data_format == "NCDHW":
        return function(x)
    return manipulation.transpose(function(manipulation.transpose(x, [0, 4, 1, 2, 3])), [0, 2, 3, 4, 1])


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCDHW", name=None):
    """weight [out, in / groups, d, h, w]."""
    stride, dilation, kernel = triple(stride, "stride"), triple(dilation, "dilation"), list(weight.shape[2:])

    def run(volume):
        channels, sizes = volume.shape[1], list(volume.shape[2:])
        around = _padding(padding, data_format, sizes, kernel, stride, dilation)
        if any(around[:2]):
            volume = pad(volume, [0, 0, 0, 0, *around[:2], 0, 0, 0, 0])
        depth = (volume.shape[2] - (kernel[0] - 1) * dilation[0] - 1) // stride[0] + 1
        if depth < 1:
            raise native.InvalidArgumentError(f"conv3d: a kernel of depth {kernel[0]} does not fit in '{x.name}' of shape {list(x.shape)}")
        parts = [manipulation.strided_slice(volume, [2], [k * dilation[0]],
                                            [k * dilation[0] + (depth - 1) * stride[0] + 1], [stride[0]])
                 for k in range(kernel[0])]
        behind = manipulation.transpose(manipulation.stack(parts, 2), [0, 3, 1, 2, 4, 5])
        pictures = manipulation.reshape(behind, [-1, channels * kernel[0], *sizes[1:]])
        flat = manipulation.reshape(weight, [weight.shape[0], weight.shape[1] * kernel[0], *kernel[1:]])
        out = conv.conv2d(pictures, flat, bias, stride[1:], around[2:], dilation[1:], groups, name=name)
        out = manipulation.reshape(out, [-1, depth, *out.shape[1:]])
        return manipulation.transpose(out, [0, 2, 1, 3, 4])

    return _in_ncdhw(x, data_format, run)


def _by_pictures(x, function):
    """`function` of pictures, for all depths at once."""
    channels, depth, height, width = x.shape[1:]
    out = function(manipulation.reshape(x, [0, channels * depth, height, width]))
    return manipulation.reshape(out, [0, channels, depth, *out.shape[2:]])


def by_depth(x, function):
    """`function` of pictures whose height is the depth of x."""
    channels, depth, height, width = x.shape[1:]
    out = function(manipulation.reshape(x, [0, channels, depth, height * width]))
    return manipulation.reshape(out, [0, channels, out.shape[2], height, width])


def pool3d(x, kind, kernel, stride=None, padding=0, ceil_mode=False, exclusive=True, data_format="NCDHW"):
    kernel = triple(kernel, "kernel_size")
    stride = kernel if stride is None else triple(stride, "stride")

    def run(volume):
        around = _padding(padding, data_format, volume.shape[2:], kernel, stride, [1, 1, 1])
        out = _by_pictures(volume, lambda v: conv.pool(v, kind, kernel[1:], stride[1:], around[2:], ceil_mode, exclusive))
        return by_depth(out, lambda v: conv.pool(v, kind, [kernel[0], 1], [stride[0], 1], [*around[:2], 0, 0],
                                                  ceil_mode, exclusive))

    return _in_ncdhw(x, data_format, run)


def max_pool3d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW", name=None):
    conv._no_mask("max_pool3d", return_mask)
    return pool3d(x, "max", kernel_size, stride, padding, ceil_mode, True, data_format)


def avg_pool3d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
               data_format="NCDHW", name=None):
    if divisor_override is not None:
        raise native.UnsupportedError("avg_pool3d: divisor_override is not here")
    return pool3d(x, "avg", kernel_size, stride, padding, ceil_mode, exclusive, data_format)


def adaptive_pool3d(x, kind, output_size, data_format="NCDHW"):
    sizes = as_list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * 3

    def run(volume):
        size = [n if s is None else s for n, s in zip(volume.shape[2:], sizes)]
        out = _by_pictures(volume, lambda v: conv._adaptive(v, kind, size[1:], "NCHW", None))
        return by_depth(out, lambda v: conv._adaptive(v, kind, [size[0], v.shape[3]], "NCHW", None))

    return _in_ncdhw(x, data_format, run)


def adaptive_avg_pool3d(x, output_size, data_format="NCDHW", name=None):
    return adaptive_pool3d(x, "avg", output_size, data_format)


def adaptive_max_pool3d(x, output_size, return_mask=False, name=None):
    conv._no_mask("adaptive_max_pool3d", return_mask)
    return adaptive_pool3d(x, "max", output_size)
