"""Layer: parameters and sublayers under names. Calling one adds its ops to the program of its input."""
import collections

from paddle import _dtype, _param
from paddle._graph import Parameter, Variable
from paddle._native import native
from paddle.utils import unique_name


class Layer:
    def __init__(self, name_scope=None, dtype="float32"):
        object.__setattr__(self, "_parameters", collections.OrderedDict())
        object.__setattr__(self, "_sub_layers", collections.OrderedDict())
        object.__setattr__(self, "_buffers", collections.OrderedDict())
        object.__setattr__(self, "_not_saved", set())  # names of buffers that state_dict leaves out
        self.training = True
        self._dtype = dtype
        self._full_name = unique_name.generate(name_scope or _snake(type(self).__name__))
        self._pre_hooks, self._post_hooks = [], []

    # ---- building ----
    def forward(self, *inputs, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    def __call__(self, *inputs, **kwargs):
        for hook in self._pre_hooks:
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in self._post_hooks:
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def create_parameter(self, shape, attr=None, dtype=None, is_bias=False, default_initializer=None):
        return _param.make(shape, attr, self._full_name, dtype or self._dtype, is_bias, default_initializer)

    def create_state(self, name, shape, value):
        """A variable that lives from step to step and is not trained."""
        from paddle._graph import default_main_program
        program = default_main_program()
        name = name or unique_name.generate(self._full_name + ".w")
        program.builder().state(name, _dtype.convert(self._dtype), list(shape), float(value))
        return program._variable(name)

    # ---- attributes ----
    def __setattr__(self, name, value):
        for kind, where in ((Parameter, "_parameters"), (Layer, "_sub_layers")):
            if isinstance(value, kind):
                if where not in self.__dict__:
                    raise RuntimeError(f"call super().__init__() before setting '{name}'")
                self.__dict__[where][name] = value
                self.__dict__.pop(name, None)
                return
        for where in ("_parameters", "_sub_layers", "_buffers"):
            if name in self.__dict__.get(where, ()):
                if value is None:
                    self.__dict__[where][name] = None
                    return
                del self.__dict__[where][name]
        object.__setattr__(self, name, value)

    def __getattr__(self, name):
        for where in ("_parameters", "_sub_layers", "_buffers"):
            found = self.__dict__.get(where, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")

    def __delattr__(self, name):
        for where in ("_parameters", "_sub_layers", "_buffers"):
            if name in self.__dict__[where]:
                del self.__dict__[where][name]
                return
        object.__delattr__(self, name)

    def add_parameter(self, name, parameter):
        if parameter is None:
            self._parameters[name] = None
        else:
            setattr(self, name, parameter)
        return parameter

    def add_sublayer(self, name, sublayer):
        if not isinstance(sublayer, Layer):
            raise TypeError(f"add_sublayer takes a Layer, not {type(sublayer).__name__}")
        self._sub_layers[name] = sublayer
        return sublayer

    def register_buffer(self, name, tensor, persistable=True):
        self._buffers[name] = tensor
        (self._not_saved.discard if persistable else self._not_saved.add)(name)

    def register_forward_pre_hook(self, hook):
        self._pre_hooks.append(hook)
        return _Hook(self._pre_hooks, hook)

    def register_forward_post_hook(self, hook):
        self._post_hooks.append(hook)
        return _Hook(self._post_hooks, hook)

    # ---- looking ----
    def full_name(self):
        return self._full_name

    def children(self):
        return (layer for _, layer in self.named_children())

    def named_children(self):
        return ((name, layer) for name, layer in self._sub_layers.items() if layer is not None)

    def named_sublayers(self, prefix="", include_self=False, layers_set=None):
        seen = set() if layers_set is None else layers_set
        if include_self and self not in seen:
            seen.add(self)
            yield prefix, self
        for name, layer in self.named_children():
            if layer in seen:
                continue
            path = f"{prefix}.{name}" if prefix else name
            yield from layer.named_sublayers(path, True, seen)

    def sublayers(self, include_self=False):
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def named_parameters(self, prefix="", include_sublayers=True):
        seen = set()
        layers = [(prefix, self)] + (list(self.named_sublayers(prefix)) if include_sublayers else [])
        for path, layer in layers:
            for name, parameter in layer._parameters.items():
                if parameter is not None and parameter.name not in seen:
                    seen.add(parameter.name)
                    yield (f"{path}.{name}" if path else name), parameter

    def parameters(self, include_sublayers=True):
        return [p for _, p in self.named_parameters(include_sublayers=include_sublayers)]

    def named_buffers(self, prefix="", include_sublayers=True):
        return self._named_buffers(prefix, include_sublayers, lambda layer, name: True)

    def _named_buffers(self, prefix, include_sublayers, wanted):
        layers = [(prefix, self)] + (list(self.named_sublayers(prefix)) if include_sublayers else [])
        for path, layer in layers:
            for name, buffer in layer._buffers.items():
                if buffer is not None and wanted(layer, name):
                    yield (f"{path}.{name}" if path else name), buffer

    def buffers(self, include_sublayers=True):
        return [b for _, b in self.named_buffers(include_sublayers=include_sublayers)]

    # ---- mode ----
    def train(self):
        """Dropout and batch norm as in training, in calls from now on."""
        for layer in self.sublayers(include_self=True):
            layer.training = True

    def eval(self):
        for layer in self.sublayers(include_self=True):
            layer.training = False

    def apply(self, function):
        for layer in self.children():
            layer.apply(function)
        function(self)
        return self

    # ---- values ----
    def state_dict(self, destination=None, include_sublayers=True, structured_name_prefix=""):
        """{name: variable}; paddle.save writes their values."""
        out = collections.OrderedDict() if destination is None else destination
        saved = self._named_buffers("", include_sublayers, lambda layer, name: name not in layer._not_saved)
        for name, variable in [*self.named_parameters(include_sublayers=include_sublayers), *saved]:
            out[structured_name_prefix + name] = variable
        return out

    def set_state_dict(self, state_dict, use_structured_name=True):
        own = self.state_dict()
        for name, variable in own.items():
            key = name if use_structured_name else variable.name
            if key in state_dict:
                value = state_dict[key]
                variable.set_value(value.get_value() if isinstance(value, Variable) else value)

    set_dict = load_dict = set_state_dict

    def clear_gradients(self):
        """Every run of a program computes its gradients anew: there is nothing to clear."""

    def to(self, device=None, dtype=None, blocking=None):
        """Every device is this process; another type is refused."""
        if dtype is not None and _dtype.convert(dtype) != self._dtype:
            raise native.UnsupportedError(f"{type(self).__name__}.to: its parameters are {self._dtype}; another dtype is "
                                          "given when the layer is made")
        return self

    def extra_repr(self):
        return ""

    def __repr__(self):
        lines = [f"({name}): " + repr(layer).replace("\n", "\n  ") for name, layer in self.named_children()]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


class _Hook:
    def __init__(self, hooks, hook):
        self._hooks, self._hook = hooks, hook

    def remove(self):
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


def _snake(name):
    """Conv2D -> conv2d, BatchNorm2D -> batch_norm2d, MyNet -> my_net."""
    out = ""
    for i, c in enumerate(name):
        if c.isupper() and i and (name[i - 1].islower() or (i + 1 < len(name) and name[i + 1].islower() and
                                                            not name[i - 1].isdigit())):
            out += "_"
        out += c.lower()
    return out
