"""ParamAttr, and the making of parameters."""
from paddle import _dtype
from paddle import _graph
from paddle._native import user_line
from paddle.nn import initializer as I
from paddle.regularizer import WeightDecayRegularizer
from paddle.utils import unique_name


class ParamAttr:
    """What is special about one parameter. is_distributed: it belongs on the parameter servers, where the job has
    some; without servers every worker keeps it. gradient_clip (1.x): how its gradient is clipped by an optimizer without a
    grad_clip; all parameters that have one have the same."""

    def __init__(self, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 do_model_average=True, need_clip=True, is_distributed=False, gradient_clip=None):
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average
        self.need_clip = need_clip
        self.is_distributed = is_distributed
        if gradient_clip is not None and not hasattr(gradient_clip, "options"):
            raise TypeError(f"ParamAttr: gradient_clip must be a GradientClipBy..., not {type(gradient_clip).__name__}")
        self.gradient_clip = gradient_clip

    @staticmethod
    def _to_attr(value):
        """From what users write: None, a name, an initializer, a regularizer, True; False stays False."""
        if value is None or value is True:
            return ParamAttr()
        if value is False:
            return False
        if isinstance(value, ParamAttr):
            return value
        if isinstance(value, str):
            return ParamAttr(name=value)
        if isinstance(value, I.Initializer):
            return ParamAttr(initializer=value)
        if isinstance(value, WeightDecayRegularizer):
            return ParamAttr(regularizer=value)
        if isinstance(value, (list, tuple)):
            return [ParamAttr._to_attr(v) for v in value]
        raise TypeError(f"{type(value).__name__} cannot describe a parameter; give a ParamAttr, a name, an "
                        "initializer, or False for none")


class WeightNormParamAttr(ParamAttr):
    def __init__(self, dim=None, name=None, initializer=None, learning_rate=1.0, regularizer=None, trainable=True,
                 do_model_average=False, need_clip=True):
        from paddle._refuse import refuse
        raise refuse("paddle.static.WeightNormParamAttr", "ParamAttr")


def options(attr, name, shape, is_bias=False, default_init=None):
    """As the C++ side takes it. `attr` is a ParamAttr, `name` serves where it has none."""
    out = {"name": attr.name or name, "trainable": bool(attr.trainable), "need_clip": bool(attr.need_clip)}
    init = attr.initializer or I.default_for(is_bias, default_init)
    if not isinstance(init, I.Initializer):
        raise TypeError(f"parameter '{out['name']}': the initializer is a {type(init).__name__}; give one of "
                        "paddle.nn.initializer")
    out["init"] = init.options(list(shape))
    if attr.is_distributed:
        out["is_distributed"] = True
    if attr.learning_rate != 1.0:
        out["lr"] = float(attr.learning_rate)
    if attr.regularizer is not None:
        out.update(attr.regularizer.options())
    return out


def make(shape, attr=None, layer="param", dtype="float32", is_bias=False, default_init=None, program=None):
    """A parameter of `program`; None where attr is False. A parameter of the same name is shared."""
    attr = ParamAttr._to_attr(attr)
    if attr is False:
        return None
    program = program or _graph.default_main_program()
    shape = [int(d) for d in shape]
    name = attr.name or unique_name.generate(layer + (".b" if is_bias else ".w"))
    program.builder().parameter(shape, _dtype.convert(dtype), options(attr, name, shape, is_bias, default_init), None,
                                *user_line())
    return remember(program, name, attr)


def remember(program, name, attr):
    """Notes the ParamAttr at the parameter, for those who ask for it later."""
    variable = program._variable(name)
    if isinstance(variable, _graph.Parameter) and variable.attr is None:
        variable.attr = attr
    return variable
