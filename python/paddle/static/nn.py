"""Layers that own their parameters: a call makes them and uses them."""
from paddle import _dtype, _param, _refuse
from paddle._graph import Variable, as_list, in_float64, layer_call
from paddle._native import native
from paddle._param import ParamAttr
from paddle.nn import initializer as I
from paddle.nn.functional import _volumes as volumes, activation, conv
from paddle.tensor import manipulation, math
from paddle.utils import unique_name

__all__ = ["fc", "conv2d", "conv2d_transpose", "conv3d", "batch_norm", "layer_norm", "embedding", "sparse_embedding",
           "group_norm", "instance_norm", "prelu", "create_parameter"]


class Names:
    """Parameters of one layer, named as the original names them: fc_0.w_0, fc_0.b_0."""

    def __init__(self, kind, name, program):
        self.layer = name or unique_name.generate(kind)
        self.program = program
        self._made = []

    def parameter(self, attr, shape, suffix="w", default_init=None):
        """Options for the C++ layer, or None where the user said False."""
        attr = ParamAttr._to_attr(attr)
        if attr is False:
            return None
        name = attr.name or unique_name.generate(f"{self.layer}.{suffix}")
        self._made.append((name, attr))
        return _param.options(attr, name, shape, suffix == "b", default_init)

    def state(self, name):
        return name or unique_name.generate(f"{self.layer}.w")

    def remember(self):
        for name, attr in self._made:
            if self.program.ir.has(name):
                _param.remember(self.program, name, attr)


def _check_input(layer, x):
    if not isinstance(x, Variable):
        raise TypeError(f"{layer}: the input must be a variable of a program, not {type(x).__name__}")


def fc(x, size, num_flatten_dims=1, weight_attr=None, bias_attr=None, activation=None, name=None):
    """activation(x * w + b). Dimensions of x from num_flatten_dims on are flattened. A list of inputs is summed up,
    each with a weight of its own."""
    inputs = as_list(x)
    if len(inputs) > 1:
        return _fc_of_many(inputs, size, num_flatten_dims, weight_attr, bias_attr, activation, name)
    x = inputs[0]
    _check_input("fc", x)
    rank = len(x.shape)
    kept = num_flatten_dims + rank if num_flatten_dims < 0 else num_flatten_dims
    if kept == rank or (rank == 1 and kept == 1):
        x = manipulation.unsqueeze(x, -1)
    width = 1
    for d in x.shape[kept:]:
        width *= d
    names = Names("fc", name, x.program)
    weight_attr = weight_attr[0] if isinstance(weight_attr, (list, tuple)) else weight_attr
    weight = names.parameter(weight_attr, [width, size])
    bias = names.parameter(bias_attr, [size], "b")
    options = {"size": int(size), "num_flatten_dims": kept, "weight_attr": weight, "bias": bias is not None}
    if bias is not None:
        options["bias_attr"] = bias
    out = layer_call(native.fc, x, options, names.layer)
    names.remember()
    return math.activate(out, activation)


def _fc_of_many(inputs, size, num_flatten_dims, weight_attr, bias_attr, act, name):
    layer = name or unique_name.generate("fc")
    attrs = weight_attr if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
    parts = [fc(x, size, num_flatten_dims, attr, False, None, layer) for x, attr in zip(inputs, attrs)]
    out = math.add_n(parts)
    if bias_attr is not False:
        bias = _param.make([size], bias_attr, layer, is_bias=True, program=out.program)
        out = math.add(out, bias)
    return math.activate(out, act)


def _conv(function, x, num_filters, filter_size, stride, padding, dilation, groups, weight_attr, bias_attr, act, name,
          data_format, extra, shape_of, default_init, kind):
    _check_input(kind, x)
    channels = x.shape[1] if data_format == "NCHW" else x.shape[3]
    if channels < 0:
        raise native.InvalidArgumentError(f"{kind}: the channels of '{x.name}' of shape {list(x.shape)} must be known")
    kernel = conv.pair(filter_size, "filter_size")
    groups = groups or 1
    names = Names(kind, name, x.program)
    weight = names.parameter(weight_attr, shape_of(channels, groups, kernel), "w", default_init(channels, kernel))
    bias = names.parameter(bias_attr, [num_filters], "b")
    options = {"filters": int(num_filters), "kernel": kernel, "stride": conv.pair(stride, "stride"),
               "padding": conv.padding_of(padding, data_format), "dilation": conv.pair(dilation, "dilation"),
               "groups": int(groups), "weight_attr": weight, "bias": bias is not None, **extra}
    if bias is not None:
        options["bias_attr"] = bias
    out = conv.in_nchw(x, data_format, lambda image: layer_call(function, image, options, names.layer))
    names.remember()
    return math.activate(out, act)


def conv2d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None,
           bias_attr=None, use_cudnn=True, act=None, name=None, data_format="NCHW"):
    """Weights [num_filters, channels / groups, h, w], normal with variance 2 / (h * w * channels)."""
    return _conv(native.conv2d, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                 bias_attr, act, name, data_format, {},
                 lambda channels, g, k: [num_filters, channels // g] + k,
                 lambda channels, k: I.Normal(0.0, (2.0 / (k[0] * k[1] * channels)) ** 0.5), "conv2d")


def conv2d_transpose(input, num_filters, output_size=None, filter_size=None, padding=0, stride=1, dilation=1,
                     groups=None, param_attr=None, bias_attr=None, use_cudnn=True, act=None, name=None,
                     data_format="NCHW"):
    """Weights [channels, num_filters / groups, h, w], Xavier uniform."""
    if filter_size is None:
        raise native.UnsupportedError("conv2d_transpose: give filter_size; it is not guessed from output_size")
    extra = {}
    if output_size is not None:
        size, kernel = conv.pair(output_size), conv.pair(filter_size)
        s, p, d = conv.pair(stride), conv.padding_of(padding), conv.pair(dilation)
        p = p if len(p) == 4 else [p[0], p[0], p[1], p[1]]
        lengths = input.shape[2:4] if data_format == "NCHW" else input.shape[1:3]
        extra["output_padding"] = [size[i] - ((lengths[i] - 1) * s[i] - p[2 * i] - p[2 * i + 1] +
                                              (kernel[i] - 1) * d[i] + 1) for i in range(2)]
    return _conv(native.conv2d_transpose, input, num_filters, filter_size, stride, padding, dilation, groups,
                 param_attr, bias_attr, act, name, data_format, extra,
                 lambda channels, g, k: [channels, num_filters // g] + k, lambda channels, k: None,
                 "conv2d_transpose")


def conv3d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None, param_attr=None, bias_attr=None,
           use_cudnn=True, act=None, name=None, data_format="NCDHW"):
    """Weights [num_filters, channels / groups, d, h, w], normal with variance 2 / (d * h * w * channels)."""
    _check_input("conv3d", input)
    channels, kernel = input.shape[1 if data_format == "NCDHW" else -1], volumes.triple(filter_size, "filter_size")
    if channels < 0 or channels % (groups or 1) or num_filters % (groups or 1):
        raise native.InvalidArgumentError(f"conv3d: {channels} channels of '{input.name}' and {num_filters} filters must be known, "
                                          f"and whole multiples of groups={groups}")
    layer = name or unique_name.generate("conv3d")
    std = (2.0 / (kernel[0] * kernel[1] * kernel[2] * channels)) ** 0.5
    weight = _param.make([num_filters, channels // (groups or 1)] + kernel, param_attr, layer,
                         default_init=I.Normal(0.0, std), program=input.program)
    bias = _param.make([num_filters], bias_attr, layer, is_bias=True, program=input.program)
    return math.activate(volumes.conv3d(input, weight, bias, stride, padding, dilation, groups or 1, data_format), act)


def batch_norm(input, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None, bias_attr=None,
               data_layout="NCHW", in_place=False, name=None, moving_mean_name=None, moving_variance_name=None,
               do_model_average_for_mean_and_var=True, use_global_stats=False):
    """Over all but the channel dimension; running = momentum * running + (1 - momentum) * batch."""
    _check_input("batch_norm", input)
    rank = len(input.shape)
    last = data_layout == "NHWC" and rank == 4
    channels = input.shape[3] if last else input.shape[1]
    names = Names("batch_norm", name, input.program)
    scale = names.parameter(param_attr, [channels], "w", I.Constant(1.0))
    bias = names.parameter(bias_attr, [channels], "b")
    fixed = ParamAttr(trainable=False)
    options = {"momentum": float(momentum), "epsilon": float(epsilon), "is_test": bool(is_test),
               "use_global_stats": bool(use_global_stats),
               "scale_attr": scale if scale is not None else names.parameter(fixed, [channels], "w", I.Constant(1.0)),
               "bias_attr": bias if bias is not None else names.parameter(fixed, [channels], "b")}
    options["mean_name"] = names.state(moving_mean_name)
    options["variance_name"] = names.state(moving_variance_name)

    def run(image):
        if rank == 3:
            return manipulation.squeeze(run_4d(manipulation.unsqueeze(image, 3)), 3)
        if rank == 5:
            return volumes.by_depth(image, run_4d)
        return run_4d(image)

    def run_4d(image):
        return layer_call(native.batch_norm, image, options, names.layer)

    out = conv.in_nchw(input, "NHWC" if last else "NCHW", run)
    names.remember()
    return math.activate(out, act)


def layer_norm(input, scale=True, shift=True, begin_norm_axis=1, epsilon=1e-05, param_attr=None, bias_attr=None,
               act=None, name=None):
    _check_input("layer_norm", input)
    width = 1
    for d in input.shape[begin_norm_axis:]:
        width *= d
    names = Names("layer_norm", name, input.program)
    weight = names.parameter(param_attr, [width], "w", I.Constant(1.0)) if scale else None
    bias = names.parameter(bias_attr, [width], "b") if shift else None
    options = {"begin_norm_axis": int(begin_norm_axis), "epsilon": float(epsilon), "scale": weight is not None,
               "bias": bias is not None}
    if weight is not None:
        options["scale_attr"] = weight
    if bias is not None:
        options["bias_attr"] = bias
    out = layer_call(native.layer_norm, input, options, names.layer)
    names.remember()
    return math.activate(out, act)


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Rows of a table [rows, width]; the result has the shape of input with the width appended. is_distributed: the
    table belongs on the parameter servers, where the job has some."""
    _check_input("embedding", input)
    if _dtype.convert(dtype) not in ("float32", "float64"):
        raise native.UnsupportedError(f"embedding: dtype must be float32, or float64 for a result of that type, got {dtype}")
    rows, dim = [int(n) for n in size]
    if padding_idx is not None and padding_idx < 0:
        padding_idx += rows
    names = Names("embedding", None, input.program)
    weight = names.parameter(param_attr, [rows, dim])
    if weight is None:
        raise native.InvalidArgumentError("embedding: param_attr=False: the table is its only parameter")
    if is_distributed:
        weight["is_distributed"] = True
    options = {"rows": rows, "dim": dim, "sparse": bool(is_sparse), "weight_attr": weight,
               "padding_idx": -1 if padding_idx is None else int(padding_idx)}
    out = layer_call(native.embedding, input, options, names.layer)
    names.remember()
    return in_float64(out) if _dtype.convert(dtype) == "float64" else out


def _embedding_of_columns(input, *arguments):
    """As the first op of the original: ids [..., 1] -> [..., width]. The rows lose the dimension, not the ids: servers are
    asked ahead for ids that are fed."""
    rows = embedding(input, *arguments)
    return manipulation.squeeze(rows, -2) if len(input.shape) > 1 and input.shape[-1] == 1 else rows


def sparse_embedding(input, size, padding_idx=None, is_test=False, entry=None, param_attr=None, dtype="float32"):
    """A table on the parameter servers: rows are made when their ids first come, also ids beyond `size`. ids [..., 1] ->
    [..., width]: the last dimension of length 1 goes, as in the original; others keep all. `entry`
    (paddle.distributed.CountFilterEntry, ProbabilityEntry, ShowClickEntry) says when, and how they end. A process that trains alone, by
    fleet.distributed_optimizer, keeps such a table itself. With several workers and no servers, and without fleet, it is a
    parameter with the rows of `size`, and its gradient holds only those that were used."""
    out = _embedding_of_columns(input, size, True, True, padding_idx, param_attr, dtype)
    if entry is not None:
        if not hasattr(entry, "admission"):
            raise TypeError("sparse_embedding: entry must be a CountFilterEntry, a ProbabilityEntry or a "
                            "ShowClickEntry, not "
                            f"{type(entry).__name__}")
        table = next(op["inputs"]["w"][0] for op in reversed(input.program.ir.ops()) if op["type"] == "embedding")
        for name, value in entry.admission().items():
            input.program.ir.set_attr_of(table, name, value)
    return out


def group_norm(input, groups, epsilon=1e-05, param_attr=None, bias_attr=None, act=None, data_layout="NCHW", name=None):
    from paddle.nn import functional as F
    layer = name or unique_name.generate("group_norm")
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    weight = _param.make([channels], param_attr, layer, default_init=I.Constant(1.0), program=input.program)
    bias = _param.make([channels], bias_attr, layer, is_bias=True, program=input.program)
    return math.activate(F.group_norm(input, groups, epsilon, weight, bias, data_layout), act)


def instance_norm(input, epsilon=1e-05, param_attr=None, bias_attr=None, name=None):
    from paddle.nn import functional as F
    layer = name or unique_name.generate("instance_norm")
    channels = input.shape[1]
    weight = _param.make([channels], param_attr, layer, default_init=I.Constant(1.0), program=input.program)
    bias = _param.make([channels], bias_attr, layer, is_bias=True, program=input.program)
    return F.instance_norm(input, weight=weight, bias=bias, eps=epsilon)


def prelu(x, mode, param_attr=None, data_format="NCHW", name=None):
    """mode: 'all' (one slope), 'channel', or 'element' (one for each element of a sample)."""
    if mode not in ("all", "channel", "element"):
        raise native.UnsupportedError(f"prelu: mode must be 'all', 'channel' or 'element', got {mode!r}")
    if mode == "element":
        weight = _param.make([1, *x.shape[1:]], param_attr, name or unique_name.generate("prelu"),
                             default_init=I.Constant(0.25), program=x.program)
        return activation.relu(x) - weight * activation.relu(-x)
    channels = x.shape[-1 if data_format.endswith("C") else 1]
    weight = _param.make([1 if mode == "all" else channels], param_attr, name or unique_name.generate("prelu"),
                         default_init=I.Constant(0.25), program=x.program)
    return activation.prelu(x, weight, data_format)


from paddle.tensor.creation import create_parameter  # noqa: E402

__path__ = []  # importing one of its modules asks paddle._missing_modules

_FROM_1_X = """case cond switch_case while_loop sequence_concat sequence_conv sequence_enumerate sequence_expand sequence_expand_as
    sequence_first_step sequence_last_step sequence_pad sequence_pool sequence_reshape sequence_reverse
    sequence_scatter sequence_slice sequence_softmax sequence_unpad crf_decoding StaticRNN nce data_norm
    bilinear_tensor_product sequence_lod""".split()
_refused = _refuse.getter(__name__, {
    "conv3d_transpose": "conv2d_transpose",
    "py_func": "an op in C++: docs/add-an-op.md", "row_conv": "conv2d", "spectral_norm": "nothing",
    "deform_conv2d": "conv2d", "multi_box_head": "nothing"},
    lazy={"control_flow": "paddle.fluid.layers.control_flow", "common": "paddle.static.nn"})


def __getattr__(name):
    if name in _FROM_1_X:
        from paddle.fluid import layers
        return getattr(layers, name)
    return _refused(name)
