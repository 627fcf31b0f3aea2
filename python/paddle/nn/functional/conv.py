"""Convolutions and pooling on images. data_format "NHWC" is served by transposing around the op."""
from paddle._graph import as_list, call, layer_call
from paddle._native import native, user_line
from paddle.tensor import manipulation
from paddle.utils import unique_name

__all__ = ["conv2d", "conv1d", "conv2d_transpose", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d",
           "adaptive_max_pool2d", "max_pool1d", "avg_pool1d", "adaptive_avg_pool1d", "adaptive_max_pool1d"]

TO_NCHW, TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]


def pair(value, what="size"):
    """3 means 3x3."""
    values = [int(v) for v in as_list(value)]
    if len(values) == 1:
        values *= 2
    if len(values) != 2:
        raise native.InvalidArgumentError(f"{what} takes one or two numbers, got {list(value)}")
    return values


def padding_of(value, data_format="NCHW"):
    """A number, [h, w], [top, bottom, left, right], one pair per dimension, "SAME" or "VALID"."""
    if isinstance(value, str):
        if value.upper() not in ("SAME", "VALID"):
            raise native.InvalidArgumentError(f"padding must be numbers, 'SAME' or 'VALID', got {value!r}")
        return value.upper()
    values = as_list(value)
    if values and isinstance(values[0], (list, tuple)):
        spatial = values[2:4] if data_format == "NCHW" else values[1:3]
        return [int(n) for pair_ in spatial for n in pair_]
    values = [int(v) for v in values]
    return values * 2 if len(values) == 1 else values


def in_nchw(x, data_format, function):
    """Applies a function of NCHW images to x in its own format."""
    if data_format in ("NCHW", None):
        return function(x)
    if data_format != "NHWC":
        raise native.InvalidArgumentError(f"data_format must be 'NCHW' or 'NHWC', got {data_format!r}")
    return manipulation.transpose(function(manipulation.transpose(x, TO_NCHW)), TO_NHWC)


def _resolved(x, padding, kernel, stride, dilation):
    if not isinstance(padding, str):
        return padding
    return native.resolve_padding(x.program.builder(), x.name,
                                  {"padding": padding, "kernel": kernel, "stride": stride, "dilation": dilation},
                                  *user_line())


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW", name=None):
    """weight [out, in / groups, h, w]."""
    stride, dilation = pair(stride, "stride"), pair(dilation, "dilation")
    padding = padding_of(padding, data_format)

    def run(image):
        resolved = _resolved(image, padding, list(weight.shape[2:]), stride, dilation)
        return call("conv2d", {"x": image, "w": weight, "bias": bias},
                    {"stride": stride, "padding": resolved, "dilation": dilation, "groups": int(groups)}, name)

    return in_nchw(x, data_format, run)


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCL", name=None):
    """weight [out, in / groups, length]; x is [N, C, L], or [N, L, C] with data_format "NLC"."""
    if data_format not in ("NCL", "NLC"):
        raise native.InvalidArgumentError(f"conv1d: data_format must be 'NCL' or 'NLC', got {data_format!r}")
    if not isinstance(padding, str):
        padding = [0, 0, *_ends(padding)]
    last = data_format == "NLC"
    line = manipulation.transpose(x, [0, 2, 1]) if last else x
    out = conv2d(manipulation.unsqueeze(line, 2), manipulation.unsqueeze(weight, 2), bias, [1, as_list(stride)[0]],
                 padding, [1, as_list(dilation)[0]], groups, name=name)
    out = manipulation.squeeze(out, 2)
    return manipulation.transpose(out, [0, 2, 1]) if last else out


def _ends(padding):
    """[before, after] of a number, [both], [before, after], or one pair per dimension."""
    values = as_list(padding)
    if values and isinstance(values[0], (list, tuple)):
        values = next((list(pair_) for pair_ in values if any(pair_)), [0])
    if len(values) not in (1, 2):
        raise native.InvalidArgumentError(f"conv1d: padding takes one or two numbers, got {padding}")
    return [int(values[0]), int(values[-1])]


def conv2d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
                     output_size=None, data_format="NCHW", name=None):
    """weight [in, out / groups, h, w]."""
    stride, dilation = pair(stride, "stride"), pair(dilation, "dilation")
    padding = padding_of(padding, data_format)
    if padding == "SAME":
        raise native.UnsupportedError("conv2d_transpose: padding='SAME' is not here; give numbers")
    padding = [0, 0] if padding == "VALID" else padding
    extra = pair(output_padding, "output_padding")
    if output_size is not None:
        size = pair(output_size, "output_size")
        both = padding if len(padding) == 4 else [padding[0], padding[0], padding[1], padding[1]]
        for i in range(2):
            kernel = (weight.shape[2 + i] - 1) * dilation[i] + 1
            plain = (x.shape[2 + i] - 1) * stride[i] - both[2 * i] - both[2 * i + 1] + kernel
            extra[i] = size[i] - plain

    def run(image):
        return call("conv2d_transpose", {"x": image, "w": weight, "bias": bias},
                    {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation,
                     "groups": int(groups)}, name)

    return in_nchw(x, data_format, run)


def pool(x, kind, kernel, stride=None, padding=0, ceil_mode=False, exclusive=True, global_pooling=False,
         data_format="NCHW", name=None):
    kernel = pair(kernel, "kernel_size")
    options = {"kernel": kernel, "stride": kernel if stride is None else pair(stride, "stride"),
               "padding": padding_of(padding, data_format), "type": kind, "ceil_mode": bool(ceil_mode),
               "exclusive": bool(exclusive), "global": bool(global_pooling)}
    layer = name or unique_name.generate("pool2d")
    return in_nchw(x, data_format, lambda image: layer_call(native.pool2d, image, options, layer))


def _no_mask(what, return_mask):
    if return_mask:
        raise native.UnsupportedError(f"{what}: return_mask=True is not here")


def max_pool2d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCHW",
               name=None):
    _no_mask("max_pool2d", return_mask)
    return pool(x, "max", kernel_size, stride, padding, ceil_mode, True, False, data_format, name)


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
               data_format="NCHW", name=None):
    if divisor_override is not None:
        raise native.UnsupportedError("avg_pool2d: divisor_override is not here")
    return pool(x, "avg", kernel_size, stride, padding, ceil_mode, exclusive, False, data_format, name)


def _adaptive(x, kind, output_size, data_format, name):
    size = [x.shape[2 + i] if s is None else s for i, s in enumerate(
        as_list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * 2)]
    layer = name or unique_name.generate("pool2d")
    return in_nchw(x, data_format, lambda image: layer_call(
        native.adaptive_pool2d, image, {"size": pair(size), "type": kind}, layer))


def adaptive_avg_pool2d(x, output_size, data_format="NCHW", name=None):
    return _adaptive(x, "avg", output_size, data_format, name)


def adaptive_max_pool2d(x, output_size, return_mask=False, name=None):
    _no_mask("adaptive_max_pool2d", return_mask)
    return _adaptive(x, "max", output_size, "NCHW", name)


def _in_2d(x, function):
    return manipulation.squeeze(function(manipulation.unsqueeze(x, 2)), 2)


def _line(value):
    return None if value is None else as_list(value)[0]


def max_pool1d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None):
    _no_mask("max_pool1d", return_mask)
    stride = _line(kernel_size) if stride is None else _line(stride)
    return _in_2d(x, lambda v: max_pool2d(v, [1, _line(kernel_size)], [1, stride], [0, _line(padding)], False,
                                          ceil_mode, name=name))


def avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None):
    stride = _line(kernel_size) if stride is None else _line(stride)
    return _in_2d(x, lambda v: avg_pool2d(v, [1, _line(kernel_size)], [1, stride], [0, _line(padding)], ceil_mode,
                                          exclusive, name=name))


def adaptive_avg_pool1d(x, output_size, name=None):
    return _in_2d(x, lambda v: adaptive_avg_pool2d(v, [1, _line(output_size)], name=name))


def adaptive_max_pool1d(x, output_size, return_mask=False, name=None):
    _no_mask("adaptive_max_pool1d", return_mask)
    return _in_2d(x, lambda v: adaptive_max_pool2d(v, [1, _line(output_size)], name=name))
