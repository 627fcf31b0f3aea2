"""Layers with parameters, and layers that only hold the arguments of a function."""
from paddle import _dtype, _param
from paddle._native import native
from paddle.nn import functional as F
from paddle.nn import initializer as I
from paddle.nn.functional import _volumes as volumes
from paddle.nn.layer.layers import Layer
from paddle.tensor import manipulation, math


class Identity(Layer):
    def __init__(self, *args):
        """Arguments are accepted so that it can take the place of a layer that has them."""
        super().__init__()

    def forward(self, input):
        return input


class Linear(Layer):
    """x @ weight [in, out] + bias."""

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__(name)
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)
        self._sizes = (in_features, out_features)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self._sizes[0]}, out_features={self._sizes[1]}"


class Embedding(Layer):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, sparse=False, weight_attr=None, name=None):
        super().__init__(name)
        self._num_embeddings, self._embedding_dim = num_embeddings, embedding_dim
        self._padding_idx, self._sparse = padding_idx, sparse
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)

    def forward(self, x):
        return F.embedding(x, self.weight, self._padding_idx, self._sparse)


class Conv2D(Layer):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCHW"):
        super().__init__()
        self._stride, self._padding, self._dilation = stride, padding, dilation
        self._groups, self._data_format, self._mode = groups, data_format, padding_mode
        kernel = self._kernel_size = F.conv.pair(kernel_size, "kernel_size")
        self._in_channels, self._out_channels = in_channels, out_channels
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"Conv2D: {in_channels} channels in and {out_channels} out cannot be cut in {groups} groups")
        std = (2.0 / (kernel[0] * kernel[1] * in_channels)) ** 0.5
        self.weight = self.create_parameter([out_channels, in_channels // groups] + kernel, weight_attr,
                                            default_initializer=I.Normal(0.0, std))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x):
        padding = self._padding
        if self._mode != "zeros":
            numbers = F.conv.padding_of(padding, self._data_format)
            numbers = numbers if len(numbers) == 4 else [numbers[0], numbers[0], numbers[1], numbers[1]]
            x = F.pad(x, numbers[2:] + numbers[:2], self._mode, data_format=self._data_format)
            padding = 0
        return F.conv2d(x, self.weight, self.bias, self._stride, padding, self._dilation, self._groups,
                        self._data_format)


class Conv1D(Layer):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCL"):
        super().__init__()
        self._stride, self._padding, self._dilation, self._groups = stride, padding, dilation, groups
        self._data_format, self._mode = data_format, padding_mode
        kernel = kernel_size[0] if isinstance(kernel_size, (list, tuple)) else kernel_size
        std = (2.0 / (kernel * in_channels)) ** 0.5
        self.weight = self.create_parameter([out_channels, in_channels // groups, kernel], weight_attr,
                                            default_initializer=I.Normal(0.0, std))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x):
        padding = self._padding
        if self._mode != "zeros":
            x = F.pad(x, F.conv._ends(padding), self._mode, data_format=self._data_format)
            padding = 0
        return F.conv1d(x, self.weight, self.bias, self._stride, padding, self._dilation, self._groups,
                        self._data_format)


class Conv3D(Layer):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
                 padding_mode="zeros", weight_attr=None, bias_attr=None, data_format="NCDHW"):
        super().__init__()
        if padding_mode != "zeros":
            raise native.UnsupportedError(f"Conv3D: padding_mode={padding_mode!r} is not here; put paddle.nn.functional.pad before it")
        self._options, self._data_format = (stride, padding, dilation, groups), data_format
        kernel = volumes.triple(kernel_size, "kernel_size")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"Conv3D: {in_channels} channels in and {out_channels} out cannot be cut in {groups} groups")
        std = (2.0 / (kernel[0] * kernel[1] * kernel[2] * in_channels)) ** 0.5
        self.weight = self.create_parameter([out_channels, in_channels // groups] + kernel, weight_attr,
                                            default_initializer=I.Normal(0.0, std))
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x):
        return F.conv3d(x, self.weight, self.bias, *self._options, self._data_format)


class Conv2DTranspose(Layer):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1,
                 groups=1, weight_attr=None, bias_attr=None, data_format="NCHW"):
        super().__init__()
        self._options = (stride, padding, output_padding, dilation, groups)
        self._data_format = data_format
        kernel = F.conv.pair(kernel_size, "kernel_size")
        self.weight = self.create_parameter([in_channels, out_channels // groups] + kernel, weight_attr)
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def forward(self, x, output_size=None):
        stride, padding, extra, dilation, groups = self._options
        return F.conv2d_transpose(x, self.weight, self.bias, stride, padding, extra, dilation, groups, output_size,
                                  self._data_format)


class _BatchNormBase(Layer):
    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 use_global_stats=None, name=None, mean_name=None, variance_name=None):
        super().__init__(name)
        self._momentum, self._epsilon = momentum, epsilon
        self._data_format, self._use_global_stats = data_format, use_global_stats
        fixed = _param.ParamAttr(trainable=False)
        self.weight = self.create_parameter([num_features], fixed if weight_attr is False else weight_attr,
                                            default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([num_features], fixed if bias_attr is False else bias_attr, is_bias=True)
        self.register_buffer("_mean", self.create_state(mean_name, [num_features], 0.0))
        self.register_buffer("_variance", self.create_state(variance_name, [num_features], 1.0))

    def forward(self, input):
        return F.batch_norm(input, self._mean, self._variance, self.weight, self.bias, self.training, self._momentum,
                            self._epsilon, self._data_format, self._use_global_stats)


class BatchNorm1D(_BatchNormBase):
    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCL",
                 use_global_stats=None, name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm2D(_BatchNormBase):
    pass


class BatchNorm3D(_BatchNormBase):
    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCDHW",
                 use_global_stats=None, name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class SyncBatchNorm(_BatchNormBase):
    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        from paddle._refuse import refuse
        raise refuse("paddle.nn.SyncBatchNorm", "paddle.nn.BatchNorm2D and DistributedStrategy().sync_batch_norm")


class BatchNorm(_BatchNormBase):
    """The one of 1.x, with an activation."""

    def __init__(self, num_channels, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None,
                 bias_attr=None, dtype="float32", data_layout="NCHW", in_place=False, moving_mean_name=None,
                 moving_variance_name=None, do_model_average_for_mean_and_var=True, use_global_stats=False,
                 trainable_statistics=False):
        if trainable_statistics:
            raise native.UnsupportedError("BatchNorm: trainable_statistics=True is not here; nearest: train()")
        if _dtype.convert(dtype) != "float32":
            raise native.UnsupportedError(f"BatchNorm: dtype must be float32, got {dtype}")
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats, None,
                         moving_mean_name, moving_variance_name)
        self._act = act
        if is_test:
            self.training = False

    def forward(self, input):
        return math.activate(super().forward(input), self._act)


class LayerNorm(Layer):
    def __init__(self, normalized_shape, epsilon=1e-05, weight_attr=None, bias_attr=None, name=None):
        super().__init__(name)
        self._shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._epsilon = epsilon
        width = 1
        for d in self._shape:
            width *= d
        self.weight = self.create_parameter([width], weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([width], bias_attr, is_bias=True)

    def forward(self, input):
        return F.layer_norm(input, self._shape, self.weight, self.bias, self._epsilon)


class GroupNorm(Layer):
    def __init__(self, num_groups, num_channels, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__(name)
        self._groups, self._epsilon, self._data_format = num_groups, epsilon, data_format
        self.weight = self.create_parameter([num_channels], weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([num_channels], bias_attr, is_bias=True)

    def forward(self, input):
        return F.group_norm(input, self._groups, self._epsilon, self.weight, self.bias, self._data_format)


class InstanceNorm2D(Layer):
    def __init__(self, num_features, epsilon=1e-05, momentum=0.9, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__(name)
        self._epsilon, self._data_format = epsilon, data_format
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=I.Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)

    def forward(self, input):
        return F.instance_norm(input, weight=self.weight, bias=self.bias, eps=self._epsilon,
                               data_format=self._data_format)


InstanceNorm1D = InstanceNorm2D


class Dropout(Layer):
    def __init__(self, p=0.5, axis=None, mode="upscale_in_train", name=None):
        super().__init__()
        self._p, self._axis, self._mode = p, axis, mode

    def forward(self, input):
        return F.dropout(input, self._p, self._axis, self.training, self._mode)


class PReLU(Layer):
    def __init__(self, num_parameters=1, init=0.25, weight_attr=None, data_format="NCHW", name=None):
        super().__init__(name)
        self._data_format = data_format
        self.weight = self.create_parameter([num_parameters], weight_attr, default_initializer=I.Constant(init))

    def forward(self, x):
        return F.prelu(x, self.weight, self._data_format)


class Flatten(Layer):
    def __init__(self, start_axis=1, stop_axis=-1):
        super().__init__()
        self._axes = (start_axis, stop_axis)

    def forward(self, input):
        return manipulation.flatten(input, *self._axes)


class Bilinear(Layer):
    def __init__(self, in1_features, in2_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__(name)
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1, x2):
        return F.bilinear(x1, x2, self.weight, self.bias)


def holder(name, function, *parameters):
    """A layer that keeps arguments of a function; parameters are (name, default) in order."""

    def __init__(self, *args, **kwargs):
        Layer.__init__(self)
        if len(args) > len(parameters):
            raise TypeError(f"{name} takes at most {len(parameters)} arguments")
        values = dict(parameters)
        values.update({p[0]: a for p, a in zip(parameters, args)})
        self._name = kwargs.pop("name", None)
        unknown = [k for k in kwargs if k not in values]
        if unknown:
            raise TypeError(f"{name} has no argument {', '.join(unknown)}; it has: {', '.join(values)}")
        values.update(kwargs)
        missing = [k for k, v in values.items() if v is REQUIRED]
        if missing:
            raise TypeError(f"{name}: {', '.join(missing)} must be given")
        for key, value in values.items():
            setattr(self, "_" + key, value)

    def arguments(self):
        return {key: getattr(self, "_" + key) for key, _ in parameters}

    def forward(self, *inputs):
        return function(*inputs, **arguments(self))

    def extra_repr(self):
        return ", ".join(f"{k}={v}" for k, v in arguments(self).items())

    return type(name, (Layer,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr,
                                 "__module__": "paddle.nn", "__doc__": function.__doc__})


REQUIRED = object()
