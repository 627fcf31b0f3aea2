"""Optimizer classes from the declarations of fleetx/optimizers/: one class for each, with the arguments of its API."""
import inspect

from paddle._graph import Variable
from paddle._native import native
from paddle.regularizer import WeightDecayRegularizer

# The arguments of all optimizers, as 2.x and 1.x call them, and the argument of Optimizer that each of them is.
COMMON = {"learning_rate": "learning_rate", "parameters": "parameters", "parameter_list": "parameters",
          "weight_decay": "weight_decay", "regularization": "weight_decay", "grad_clip": "grad_clip", "name": "name"}
COMMON_DOCS = {"learning_rate": "a number, a schedule of paddle.optimizer.lr, or a variable of the program",
               "parameters": "what is trained, variables or names; default: all trainable parameters of the loss",
               "weight_decay": "a number (L2), L1Decay or L2Decay, for parameters that have none of their own",
               "grad_clip": "how gradients are clipped before the update",
               "name": "kept, not used: states are named after their parameters"}


def definitions():
    return native.optimizers()


def make_class(definition, api, module, bases):
    """The class of an optimizer in `api`, "python" (2.x) or "fluid" (1.x). The last base is derived from Optimizer."""
    members = {"__init__": _constructor(definition, api, bases[-1]), "__doc__": _documentation(definition, api),
               "__module__": module, "kind": definition["kind"]}
    made = type(definition[api]["name"], bases, members)
    made.__init__.__qualname__ = f"{made.__name__}.__init__"
    return made


def _arguments(definition, api):
    """(name, is it keyword-only) of all arguments."""
    listed = definition[api]["arguments"]
    return [(n, False) for n in listed] + [(n, True) for n in definition["accepted"] if n not in listed]


def _default(definition, name):
    if name in definition["options"]:
        value = definition["options"][name]["default"]
        return None if isinstance(value, list) else value
    if name in definition["accepted"]:
        return definition["accepted"][name]["default"]
    return definition["lr"] if name == "learning_rate" else None


def _signature(definition, api):
    kinds = {False: inspect.Parameter.POSITIONAL_OR_KEYWORD, True: inspect.Parameter.KEYWORD_ONLY}
    parameters = [inspect.Parameter("self", kinds[False])]
    for place, (name, keyword_only) in enumerate(_arguments(definition, api)):
        required = place < definition[api]["required"]
        default = inspect.Parameter.empty if required else _default(definition, name)
        parameters.append(inspect.Parameter(name, kinds[keyword_only], default=default))
    return inspect.Signature(parameters)


def _constructor(definition, api, base):
    signature = _signature(definition, api)
    root = next(c for c in base.__mro__ if c.__name__ == "Optimizer")

    def __init__(self, *args, **kwargs):
        unknown = [name for name in kwargs if name not in signature.parameters]
        if unknown:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument '{unknown[0]}'")
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        given.apply_defaults()
        values = dict(given.arguments)
        del values["self"]
        own = {}
        for name in definition["options"].keys() & values.keys():
            option = definition["options"][name]
            own[option["name"]] = _option(self, definition["kind"], name, option, values.pop(name))
        multi_precision = bool(values.get("multi_precision"))
        for name in definition["accepted"].keys() & values.keys():
            _check_accepted(self, name, definition["accepted"][name], values.pop(name))
        decay_filter = values.pop(definition["decay_filter"], None)
        root.__init__(self, **{COMMON[name]: value for name, value in values.items()})
        self._own_options, self._multi_precision = own, multi_precision
        self._decay_filter = decay_filter
        self._filter_keeps_names = definition["filter_keeps_names"]

    __init__.__signature__ = signature
    return __init__


def _option(optimizer, kind, name, option, value):
    where = f"{type(optimizer).__name__}: {name}"
    if isinstance(option["default"], bool):
        return bool(value)
    if isinstance(option["default"], list):
        return [str(v) for v in value or ()]
    if isinstance(value, Variable):
        raise native.UnsupportedError(f"{where} must be a number, not a variable")
    if isinstance(value, WeightDecayRegularizer):
        value = value.coeff
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{where} must be a number, not {type(value).__name__}") from None
    native.check_option(kind, option["name"], value)
    return value


def _check_accepted(optimizer, name, argument, value):
    if not argument["any_value"] and value != argument["default"]:
        raise native.UnsupportedError(f"{type(optimizer).__name__}: {name} can only be {argument['default']}, "
                                      f"got {value}: {argument['reason']}")


def _documentation(definition, api):
    lines = [definition["doc"], "", "Arguments:"]
    for name, _ in _arguments(definition, api):
        if name in definition["options"]:
            doc = definition["options"][name]["doc"]
        elif name in definition["accepted"]:
            argument = definition["accepted"][name]
            doc = ("accepted, without effect: " if argument["any_value"] else f"only {argument['default']}: ") + argument["reason"]
        elif name == definition["decay_filter"]:
            doc = ("a function of a parameter's name: does it decay?" if definition["filter_keeps_names"]
                   else "a function of a parameter: is it left out of the decay?")
        else:
            doc = COMMON_DOCS[COMMON[name]]
        lines.append(f"    {name}: {doc}")
    return "\n".join(lines) + "\n"
