"""Normalization with given parameters."""
from paddle._graph import as_list, call, emit
from paddle._native import native
from paddle.nn.functional.conv import in_nchw
from paddle.tensor import manipulation, math

__all__ = ["batch_norm", "layer_norm", "instance_norm", "group_norm", "local_response_norm"]


def batch_norm(x, running_mean, running_var, weight, bias, training=False, momentum=0.9, epsilon=1e-05,
               data_format="NCHW", use_global_stats=None, name=None):
    """Over all but the channel dimension. While training, the running statistics are updated:
    running = momentum * running + (1 - momentum) * batch."""
    attrs = {"momentum": float(momentum), "epsilon": float(epsilon), "is_test": not training,
             "use_global_stats": bool(use_global_stats)}

    def run(image):
        rank, sizes = len(image.shape), image.shape[2:]
        if rank == 3:
            image = manipulation.unsqueeze(image, 3)
        elif rank == 5:
            image = manipulation.reshape(image, [0, 0, sizes[0], sizes[1] * sizes[2]])
        out = emit("batch_norm", {"x": image, "scale": weight, "bias": bias, "mean": running_mean,
                                  "variance": running_var}, attrs,
                   {"mean_out": running_mean, "variance_out": running_var}, name)["out"][0]
        if rank == 5:
            return manipulation.reshape(out, [0, 0, *sizes])
        return manipulation.squeeze(out, 3) if rank == 3 else out

    if data_format == "NDHWC":
        return manipulation.transpose(run(manipulation.transpose(x, [0, 4, 1, 2, 3])), [0, 2, 3, 4, 1])
    if data_format == "NLC":
        return manipulation.transpose(run(manipulation.transpose(x, [0, 2, 1])), [0, 2, 1])
    return in_nchw(x, "NHWC" if data_format == "NHWC" and len(x.shape) == 4 else "NCHW", run)


def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-05, name=None):
    begin = len(x.shape) - len(as_list(normalized_shape))
    return call("layer_norm", {"x": x, "scale": weight, "bias": bias},
                {"begin_norm_axis": begin, "epsilon": float(epsilon)}, name)


def _by_channel(x, parameter):
    return manipulation.reshape(parameter, [1, -1] + [1] * (len(x.shape) - 2))


def _affine(x, weight, bias):
    if weight is not None:
        x = math.multiply(x, _by_channel(x, weight))
    return x if bias is None else math.add(x, _by_channel(x, bias))


def _channels_first(x, function):
    """Applies a function of [N, C, ...] to [N, ..., C]."""
    rank = len(x.shape)
    out = function(manipulation.transpose(x, [0, rank - 1, *range(1, rank - 1)]))
    return manipulation.transpose(out, [0, *range(2, rank), 1])


def group_norm(x, num_groups, epsilon=1e-05, weight=None, bias=None, data_format="NCHW", name=None):
    if data_format not in ("NCHW", "NCL", "NC"):
        return _channels_first(x, lambda v: group_norm(v, num_groups, epsilon, weight, bias, name=name))
    shape = list(x.shape)
    if any(d < 0 for d in shape[1:]) or shape[1] % num_groups:
        raise native.InvalidArgumentError(f"group_norm: {shape[1]} channels in {num_groups} groups")
    inner = 1
    for d in shape[1:]:
        inner *= d
    grouped = manipulation.reshape(x, [-1, num_groups, inner // num_groups])
    normal = call("layer_norm", {"x": grouped}, {"begin_norm_axis": 2, "epsilon": float(epsilon)}, name)
    return _affine(manipulation.reshape(normal, [-1] + shape[1:]), weight, bias)


def instance_norm(x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.9,
                  eps=1e-05, data_format="NCHW", name=None):
    """Over every channel of every sample. Only with use_input_stats=True, which has no use for running statistics."""
    if not use_input_stats:
        raise native.UnsupportedError("instance_norm: use_input_stats=False (running statistics) is not here")
    channels = x.shape[1 if data_format in ("NCHW", "NCL", "NC") else -1]
    return group_norm(x, channels, eps, weight, bias, data_format, name)


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0, data_format="NCHW", name=None):
    from paddle.nn.functional.common import pad
    if data_format != "NCHW":
        return in_nchw(x, data_format, lambda image: local_response_norm(image, size, alpha, beta, k, name=name))
    channels = x.shape[1]
    low = size // 2
    wide = pad(math.square(x), [0, 0, low, size - 1 - low, 0, 0, 0, 0])
    total = math.add_n([manipulation.slice(wide, [1], [i], [i + channels]) for i in range(size)])
    return math.divide(x, math.pow(math.scale(total, alpha / size, k), beta), name)
