"""LayerHelper: how layers of 1.x that are written by users make their parameters, variables and ops."""
from paddle import _dtype, _graph, _param
from paddle._native import native
from paddle.nn import initializer as _initializer
from paddle.tensor import math as _math
from paddle.utils import unique_name


class LayerHelper:
    """`kwargs` are the arguments of the layer: input, param_attr, bias_attr, act, name, dtype, ..."""

    def __init__(self, layer_type, **kwargs):
        self.layer_type, self.kwargs = layer_type, kwargs
        self.name = kwargs.get("name") or unique_name.generate(layer_type)

    # ---- programs ----
    main_program = property(lambda self: _graph.default_main_program())
    startup_program = property(lambda self: _graph.default_startup_program())

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None, stop_gradient=False):
        return self.main_program.current_block().append_op(type, inputs, outputs, attrs, stop_gradient)

    # ---- the layer's arguments ----
    def multiple_input(self, input_param_name="input"):
        return _graph.as_list(self.kwargs.get(input_param_name))

    def input(self, input_param_name="input"):
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise ValueError(f"{self.layer_type} takes one input, got {len(inputs)}")
        return inputs[0]

    @property
    def param_attr(self):
        return _param.ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self):
        return _param.ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_param_attr(self, length):
        attrs = self.param_attr if isinstance(self.param_attr, list) else [self.param_attr]
        if len(attrs) not in (1, length):
            raise ValueError(f"{self.layer_type}: {len(attrs)} parameter attributes for {length} inputs")
        return attrs * length if len(attrs) == 1 else attrs

    def iter_inputs_and_params(self, input_param_name="input"):
        inputs = self.multiple_input(input_param_name)
        return zip(inputs, self.multiple_param_attr(len(inputs)))

    def input_dtype(self, input_param_name="input"):
        kinds = {v.dtype for v in self.multiple_input(input_param_name)}
        if len(kinds) > 1:
            raise ValueError(f"{self.layer_type}: the inputs have different types: {sorted(kinds)}")
        return kinds.pop() if kinds else _dtype.float32

    def is_instance(self, param_name, cls):
        value = self.kwargs.get(param_name)
        if not isinstance(value, cls):
            raise TypeError(f"{self.layer_type}: {param_name} must be a {cls}, not {type(value).__name__}")

    # ---- variables ----
    def create_parameter(self, attr, shape, dtype=None, is_bias=False, default_initializer=None, stop_gradient=False):
        """None where attr is False."""
        made = _param.make(shape, attr, self.name, dtype or _dtype.float32, is_bias, default_initializer)
        if stop_gradient and made is not None:
            made.stop_gradient = True
        return made

    def get_parameter(self, name):
        found = self.main_program.global_block().var(name)
        if not isinstance(found, _graph.Parameter):
            raise ValueError(f"'{name}' is no parameter of the program")
        return found

    def create_variable_for_type_inference(self, dtype=None, stop_gradient=False, shape=None):
        """What an op of append_op will write."""
        name = unique_name.generate(self.name + ".tmp")
        return _graph.Unwritten(self.main_program, name, None if dtype is None else _dtype.convert(dtype), shape, False,
                                stop_gradient)

    create_tmp_variable = create_variable_for_type_inference

    def create_variable(self, name=None, shape=None, dtype="float32", type=None, lod_level=0, persistable=False,
                        stop_gradient=None):
        return self.main_program.current_block().create_var(name, shape, dtype, type, lod_level, persistable, stop_gradient)

    def create_global_variable(self, persistable=False, shape=None, dtype="float32", name=None, stop_gradient=None,
                               lod_level=0, type=None):
        return self.main_program.global_block().create_var(name or unique_name.generate(self.name + ".tmp"), shape, dtype,
                                                           type, lod_level, persistable, stop_gradient)

    def create_or_get_global_variable(self, name, persistable=False, shape=None, dtype="float32", stop_gradient=None,
                                      lod_level=0, type=None):
        return self.create_global_variable(persistable, shape, dtype, name, stop_gradient, lod_level, type)

    def set_variable_initializer(self, var, initializer):
        """What a persistable variable starts with: a constant. (Others are parameters.)"""
        if not isinstance(initializer, _initializer.Constant):
            raise native.UnsupportedError(f"set_variable_initializer: '{var.name}' can start with a constant only; for others "
                                          "make it by create_parameter")
        self.startup_program.global_block().append_op(
            "fill_constant", outputs={"Out": [self.startup_program.global_block().var(var.name)]},
            attrs={"shape": list(var.shape), "dtype": var.dtype, "value": initializer.value})
        return var

    # ---- what layers end with ----
    def append_bias_op(self, input_var, dim_start=1, dim_end=None):
        """input + a bias of the shape of its dimensions [dim_start, dim_end); the input where bias_attr is False."""
        size = list(input_var.shape[dim_start:dim_end])
        bias = self.create_parameter(self.bias_attr, size, input_var.dtype, is_bias=True)
        return input_var if bias is None else _math._add(input_var, bias, dim_start, None)

    def append_activation(self, input_var):
        act = self.kwargs.get("act")
        if isinstance(act, dict):
            raise native.UnsupportedError(f"{self.layer_type}: act must be a name, got {act!r}")
        return _math.activate(input_var, act)
