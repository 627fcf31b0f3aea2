"""Variables as users see them: a Variable is a name in the C++ program behind its Program."""
from paddle import _dtype, _graph
from paddle._native import native
from paddle._refuse import refuse
from paddle.utils import unique_name

GRAD_SUFFIX = "@GRAD"
_FIRST_VALUES = ("fill", "fill_like", "gaussian", "truncated_gaussian", "uniform", "assign_value")


class Variable:
    """A value in a program. Operators and methods are added by paddle.tensor."""

    def __init__(self, program, name):
        self._home = program
        self.name = name
        self._persistable = None
        self.lod_level = 0
        self.lengths = None  # variable with the lengths of the sequences that the rows of this one form
        self.loose_rows = False  # of lengths: behind the rows of their sequences there are others, of none
        self.dim_of = None  # (variable, axis) where this is a length of another variable's shape
        self.error_clip = None
        self.constant = None  # its value, of a constant of the program: an array
        self._asks_identity = None  # of the result of a == b and a != b: are they the same variable?

    @property
    def _program(self):
        """The program that it is a variable of. Where the default one is a clone of that, or is the one that it starts, it
        is the default one's of its name: the original's layers find their inputs by name."""
        home, main = self._home, _graph.default_main_program()
        is_near = main is not home and (home in main.cloned_from or home is main.started_by())
        return main if is_near and main.ir.has(self.name) else home

    @property
    def _info(self):
        return self._program.ir.var(self.name)

    def become(self, other):
        """Stands for the value of another variable of its program from now on: ops that come later read that one."""
        self.name, self.lengths, self.constant = other.name, other.lengths, other.constant
        self._program._variables[other.name] = self
        return self

    @property
    def shape(self):
        return self._program.loose_inputs.get(self.name) or self._program.ir.shape(self.name)

    @property
    def dtype(self):
        return _dtype.convert(self._program.ir.dtype(self.name))

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        count = 1
        for d in self.shape:
            count *= d
        return count if all(d >= 0 for d in self.shape) else -1

    @property
    def block(self):
        return self._program.global_block()

    @property
    def program(self):
        return self._program

    @property
    def stop_gradient(self):
        return self._info["stop_gradient"]

    @stop_gradient.setter
    def stop_gradient(self, stop):
        if bool(stop) != self.stop_gradient:
            self._program.builder().set_stop_gradient(self.name, bool(stop))

    @property
    def persistable(self):
        return self._info["persistable"] if self._persistable is None else self._persistable

    @persistable.setter
    def persistable(self, value):
        # A fetched value is there whether it is marked or not; memory is planned from what is read.
        self._persistable = bool(value)

    @property
    def is_parameter(self):
        return self._info["is_parameter"]

    @property
    def is_data(self):
        return self._info["is_data"]

    @property
    def grad_name(self):
        return self.name + GRAD_SUFFIX

    @property
    def type(self):
        return "selected_rows" if self._info["sparse"] else "lod_tensor"

    def get_value(self, scope=None):
        from paddle._executor import global_scope
        found = (scope or global_scope()).find_var(self.name)
        if found is None:
            raise native.InvalidArgumentError(f"'{self.name}' has no value yet: run the startup program first")
        return found.get_tensor()

    def set_value(self, value, scope=None):
        """An array: its value in the scope from now on. A variable that a parameter is to begin with, filled or drawn at
        random: the startup program sets it."""
        if isinstance(value, Variable) and value.constant is None:
            return self._begin_as(value)
        from paddle._executor import global_scope
        (scope or global_scope()).var(self.name).get_tensor().set(value)

    def _begin_as(self, value):
        made = [op for op in value.program.ir.ops() if value.name in op["outputs"].get("out", ())]
        startup = self._program.started_by()
        if not made or made[0]["type"] not in _FIRST_VALUES or not startup.ir.has(self.name) or value.shape != self.shape:
            raise TypeError(f"'{self.name}'.set_value: '{value.name}' is a variable of a static program and has no value yet: give an "
                            "array; or a parameter's first values, of its shape: paddle.full, normal, uniform")
        kind, attrs = made[0]["type"], made[0]["attrs"]
        if kind == "fill_like":
            kind, attrs = "fill", {"value": attrs["value"], "shape": list(self.shape), "dtype": str(self.dtype)}
        with _graph.program_guard(startup, _graph.Program()):
            _graph.emit(kind, {}, attrs, {"out": [self.name]}, unique_name.generate(self.name + ".set"))

    def numpy(self):
        if self.constant is not None:
            return self.constant
        raise native.UnsupportedError(
            f"'{self.name}' is a variable of a static program and has no value by itself: fetch it with Executor.run")

    def backward(self, grad_tensor=None, retain_graph=False):
        raise native.UnsupportedError(
            f"'{self.name}'.backward(): FleetX runs static programs; use optimizer.minimize(loss) or "
            "paddle.static.append_backward(loss)")

    def to_string(self, throw_on_error=True, with_details=False):
        info = self._info
        kind = "param" if info["is_parameter"] else "data" if info["is_data"] else "var"
        stop = ", stop_gradient" if info["stop_gradient"] else ""
        return f"{kind} {self.name} : {info['dtype']}{list(info['shape'])}{stop}"

    def __repr__(self):
        return self.to_string()

    __str__ = __repr__
    __hash__ = object.__hash__
    __array_ufunc__ = None  # numpy.float32(0.5) * x and array * x ask x, as 0.5 * x does

    def __deepcopy__(self, memo):
        return self

    def item(self):
        """Of a constant of the program: its value as a number."""
        if self.constant is None:
            raise TypeError(f"'{self.name}' is a variable of a static program: fetch it to get its value")
        return self.constant.item()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __array__(self, *args, **kwargs):
        raise TypeError(f"'{self.name}' is a variable of a static program: fetch it to get its value")

    def __bool__(self):
        # Python asks this of a == b where it looks for a variable in a list: `a in list`, list.index(a).
        if self._asks_identity is not None:
            return self._asks_identity
        if self.dtype != "bool":
            return True  # `if mask:` asks whether there is one
        if self.constant is not None:
            return bool(self.constant.all())
        raise TypeError(
            f"'{self.name}' is a variable of a static program and is neither true nor false while the program is built. "
            "To ask whether there is a variable, write `is None` or `is not None`; to choose by its value when the "
            "program runs, use paddle.where or paddle.static.nn.cond; to choose in Python, fetch it with Executor.run")

    def __len__(self):
        shape = self.shape
        if not shape or shape[0] < 0:
            raise TypeError(f"the length of '{self.name}' of shape {list(shape)} is known only when it runs")
        return shape[0]

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]


class Parameter(Variable):
    """A variable that training changes."""

    def __init__(self, program=None, name=None, attr=None, **of_the_original):
        if of_the_original:
            raise refuse("fluid.framework.Parameter(block=...)", "Block.create_parameter; for float32 copies of parameters in 16 "
                         "bits, fluid.contrib.mixed_precision.decorate")
        super().__init__(program, name)
        self.attr = attr

    @property
    def is_distributed(self):
        """Does it belong on the parameter servers, where the job has some?"""
        return self._info["is_distributed"]

    @is_distributed.setter
    def is_distributed(self, value):
        if value and not self.is_distributed:
            raise native.UnsupportedError(
                f"'{self.name}'.is_distributed = True: a parameter of which each worker has a part is made by "
                "paddle.distributed.split (classes of a softmax, rows of a table), one on servers by "
                "embedding(is_distributed=True); instead of a dist_* loss of PLSC, use its loss of the same name without dist_")

    @property
    def trainable(self):
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value):
        self.stop_gradient = not value

    @property
    def optimize_attr(self):
        return {"learning_rate": self._info["attrs"].get("lr", 1.0)}

    @property
    def regularizer(self):
        return getattr(self.attr, "regularizer", None)

    @property
    def gradient_clip_attr(self):
        return getattr(self.attr, "gradient_clip", None)

    @property
    def do_model_average(self):
        return getattr(self.attr, "do_model_average", True)

    @property
    def need_clip(self):
        return self._info["attrs"].get("need_clip", True)
