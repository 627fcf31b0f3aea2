"""Programs as users see them. All that they hold lives in the C++ program behind them. Layers and functions add ops
through emit()."""
import contextlib
import weakref
from collections import abc

from paddle import _dtype, _loose
from paddle._block import Block, Operator  # noqa: F401
from paddle._lod_tensor import check_loose_rows
from paddle._native import native, user_line
from paddle._variable import GRAD_SUFFIX, Parameter, Variable  # noqa: F401
from paddle.utils import unique_name

LENGTHS_SUFFIX = "@LENGTHS"  # of the sequences in an input with lod_level=1: an input of its own
STEPS_SUFFIX = "@STEPS"  # 0, 1, ... up to the longest of these lengths: an input, where a layer asked for it


class _Desc:
    def __init__(self, program):
        self._program = program

    def serialize_to_string(self):
        return self._program.ir.to_proto()


class Program:
    """A list of ops over named variables."""

    serve = None  # a function, of a program that stands for a parameter server

    def __init__(self, ir=None):
        self.ir = ir if ir is not None else native.Program()
        self._variables = {}
        self._builders = {}
        self._startup = None
        self.cloned_from = weakref.WeakSet()  # programs that this one, or one that it was cloned from, was cloned from
        self._block = Block(self)
        self.lr_schedules = []  # (LRScheduler, name of the learning rate)
        self.lengths_of = {}  # input with sequences -> input with their lengths
        self.has_sequences = False  # that do not come from an input
        self.family = None  # paddle._loops.Family, of a program with loops over unknown numbers of steps
        self.between = None  # paddle._between.Steps, of a program with steps that are no ops
        self.loaders = []  # DataLoaders that feed this program by themselves
        self.micro_batches = None  # of a pipeline: (rows of one, how many make a batch)
        self.gradient_names = {}  # w@GRAD -> the variable with the gradient that the update of w reads
        self.trained_by = None  # what minimize() was told, and the programs before: for fluid.DistributeTranspiler
        self.gradient_clip = None  # of fluid.clip.set_gradient_clip
        self.loose_inputs = {}  # of fluid.layers.data and py_reader -> shapes as declared (paddle._loose)
        self._data_names = (None, set())  # of a version
        self._with_fed = {}  # version and names of computed variables that are fed -> program
        self.fp16_variables = set()  # written by ops inside paddle.static.amp.fp16_guard()
        self.feed_names = None  # of a loaded inference model
        self.fetch_names = None
        if ir is None and _default_seed:
            self.ir.seed = _default_seed
        if ir is not None:
            self.lengths_of = {n[:-len(LENGTHS_SUFFIX)]: n for n in ir.vars() if n.endswith(LENGTHS_SUFFIX)}

    # ---- building ----
    def started_by(self):
        """The program that gives first values to what lives in this one from step to step."""
        return self._startup if self._startup is not None else default_startup_program()

    def builder(self):
        startup = self.started_by()
        key = id(startup)
        if key not in self._builders:
            self._builders[key] = (native.Builder(self.ir, startup.ir), startup)
        self._builders[key][0].stage = _stages[-1]
        return self._builders[key][0]

    def _variable(self, name):
        found = self._variables.get(name)
        if found is None:
            kind = Parameter if self.ir.var(name)["is_parameter"] else Variable
            found = self._variables[name] = kind(self, name)
            if name in self.lengths_of:
                found.lengths = self._variable(self.lengths_of[name])
                found.lod_level = 1 + found.lengths.lod_level
        return found

    def note_gradients(self, pairs):
        """`pairs`: (parameter, gradient). Of the first loss, where there are several."""
        self.gradient_names = {**{p.grad_name: g.name for p, g in pairs}, **self.gradient_names}

    def before_training(self, optimizer, loss, parameters, no_grad_set, startup_program):
        """What an optimizer that minimizes `loss` here must remember to do it again for the workers of a job."""
        refuse_gradients(self, "minimize")
        _loose.loosen(self)
        if self.trained_by is not None:
            return None  # two losses: neither is the program's
        startup = startup_program or self.started_by()
        return {"main": self.ir.clone(), "startup": startup.ir.clone(), "startup_program": startup, "optimizer": optimizer,
                "loss": loss, "parameters": parameters, "no_grad_set": no_grad_set, "names": unique_name.snapshot()}

    def note_training(self, told):
        self.trained_by = told if told is None else {**told, "ops": self.ir.op_count()}

    def take_back_training(self):
        """The program, and its startup program, as they were before minimize(). Gives what that was told."""
        told, self.trained_by = self.trained_by, None
        if told is None:
            raise native.InvalidArgumentError("the program was not trained by one minimize(loss) of an optimizer")
        if self.ir.op_count() != told["ops"]:
            raise native.InvalidArgumentError("ops were added to the program after minimize(); transpile must follow it directly")
        for program, ir in ((self, told["main"]), (told["startup_program"], told["startup"])):
            program.replace(ir)
            program._variables = {n: v for n, v in program._variables.items() if ir.has(v.name)}
        self.lr_schedules, self.gradient_names = [], {}
        told["optimizer"].forget(self)
        return told

    def replace(self, ir):
        """`ir`, made from the C++ program behind this one with the same variables, takes its place."""
        self.ir, self._with_fed, self._data_names = ir, {}, (None, set())
        self._builders.clear()

    def data_names(self):
        """Of the inputs."""
        if self._data_names[0] != self.ir.version:
            self._data_names = self.ir.version, {n for n in self.ir.vars() if self.ir.var(n)["is_data"]}
        return self._data_names[1]

    def known_name(self, name):
        """The name of a variable, also of x@GRAD where the gradient of x is called otherwise; None: there is none."""
        if self.ir.has(name):
            return name if name not in self.gradient_names else self.gradient_names[name]
        found = self.gradient_names.get(name)
        if found is None and name.endswith(GRAD_SUFFIX):
            # A variable with several readers: the sum of what they give.
            found = next((n for n in self.ir.vars() if n.startswith(name + "_sum_")), None)
        return found if found is not None and self.ir.has(found) else None

    # ---- looking ----
    def global_block(self):
        return self._block

    current_block = global_block

    @property
    def current_block_idx(self):
        return 0

    @current_block_idx.setter
    def current_block_idx(self, index):
        if index != 0:
            raise native.UnsupportedError("Program.current_block_idx: ops are added where they are called, a program has one block; "
                                          "nearest: compute before the loop what it needs, or dynamic_decode of a BeamSearchDecoder")

    def block(self, index):
        if index != 0:
            raise ValueError("a program has one block")
        return self._block

    blocks = property(lambda self: [self._block])
    num_blocks = 1

    def list_vars(self):
        for name in self.ir.vars():
            yield self._variable(name)

    def all_parameters(self):
        return [self._variable(name) for name in self.ir.parameters()]

    @property
    def random_seed(self):
        return self.ir.seed

    @random_seed.setter
    def random_seed(self, seed):
        if not isinstance(seed, int):
            raise ValueError(f"Program.random_seed must be a whole number, got {seed!r}")
        self.ir.seed = seed

    @property
    def desc(self):
        return _Desc(self)

    def to_string(self, throw_on_error=True, with_details=False):
        return self.ir.to_text()

    def __repr__(self):
        return self.to_string()

    __str__ = __repr__

    # ---- deriving ----
    def clone(self, for_test=False):
        other = self.made_of(self.ir.clone_for_test() if for_test else self.ir.clone())
        if not for_test:
            other.lr_schedules, other.micro_batches = list(self.lr_schedules), self.micro_batches
        other.cloned_from = weakref.WeakSet([self, *self.cloned_from])
        other.gradient_names = dict(self.gradient_names)
        if self.family is not None:
            from paddle._loops import Family
            other.family = Family()
            other.family.loops = list(self.family.loops)
        if self.between is not None:
            other.between = self.between.of(other)
        return other

    def made_of(self, ir):
        """A program of this C++ program, which was made from the one behind this one."""
        other = Program(ir)
        other._startup = self._startup
        for name, old in self._variables.items():
            if old.name == name and other.ir.has(name):
                other._take_notes(old)
        other.feed_names, other.fetch_names = self.feed_names, self.fetch_names
        other.loose_inputs, other.gradient_clip = dict(self.loose_inputs), self.gradient_clip
        other.loaders, other.has_sequences = list(self.loaders), self.has_sequences  # both read from them
        return other

    def _take_notes(self, old):
        """What a variable of another program says about itself beside the C++ program holds here too."""
        new = self._variable(old.name)
        if isinstance(new, Parameter) and isinstance(old, Parameter):
            new.attr = old.attr
        new.lod_level, new.error_clip, new.loose_rows = old.lod_level, old.error_clip, old.loose_rows
        if old.lengths is not None and self.ir.has(old.lengths.name):
            new.lengths = self._variable(old.lengths.name)
        if old.dim_of is not None and self.ir.has(old.dim_of[0].name):
            new.dim_of = (self._variable(old.dim_of[0].name), old.dim_of[1])

    @contextlib.contextmanager
    def _lr_schedule_guard(self, is_with_opt=False):
        """Ops of schedules need no mark here."""
        yield

    @contextlib.contextmanager
    def update_ops(self):
        """Ops that are added inside are part of the update: clone(for_test=True) leaves them out."""
        builder = self.builder()
        old, builder.is_update = builder.is_update, True
        try:
            yield
        finally:
            builder.is_update = old

    _optimized_guard = lambda self, param_and_grads: self.update_ops()  # noqa: E731

    def _prune(self, targets):
        names = [t if isinstance(t, str) else t.name for t in as_list(targets)]
        return Program(self.ir.prune(names))

    @staticmethod
    def parse_from_string(binary):
        return Program(native.Program.parse_proto(binary, "program"))

    def state_dict(self, mode="all", scope=None):
        from paddle._executor import global_scope
        scope = scope or global_scope()
        parameters = set(self.ir.parameters())
        wanted = [n for n in self.ir.persistables()
                  if mode == "all" or (n in parameters) == (mode == "param")]
        return {n: scope.find_var(n).get_tensor().numpy() for n in wanted if scope.find_var(n) is not None}

    def set_state_dict(self, state_dict, scope=None):
        from paddle._executor import global_scope
        scope = scope or global_scope()
        for name, value in state_dict.items():
            if self.ir.has(name):
                scope.var(name).get_tensor().set(value)

    def __deepcopy__(self, memo):
        return self.clone()


_default_seed = 0
_main = Program()
_startup = Program()
_stages = [-1]  # of a pipeline, that layers belong to; the last one counts


def default_main_program():
    return _main


def default_startup_program():
    return _startup


def switch_main_program(program):
    global _main
    old, _main = _main, program
    return old


def switch_startup_program(program):
    global _startup
    old, _startup = _startup, program
    return old


@contextlib.contextmanager
def stage_guard(stage):
    """Inside, layers belong to this stage of a pipeline; -1: to none."""
    _stages.append(stage)
    try:
        yield
    finally:
        _stages.pop()


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """Inside, `main_program` and `startup_program` are the default ones."""
    for what, program in (("main_program", main_program), ("startup_program", startup_program)):
        if program is not None and not isinstance(program, Program):
            raise TypeError(f"program_guard: {what} must be a paddle.static.Program, not {type(program).__name__}")
        if program is None and what == "main_program":
            raise TypeError("program_guard: main_program must be a paddle.static.Program, not None")
    old_main = switch_main_program(main_program)
    old_startup = switch_startup_program(startup_program) if startup_program is not None else None
    main_program._startup = default_startup_program()
    try:
        yield
    finally:
        switch_main_program(old_main)
        if old_startup is not None:
            switch_startup_program(old_startup)


def set_seed(seed):
    global _default_seed
    _default_seed = int(seed)
    _main.ir.seed = _default_seed
    _startup.ir.seed = _default_seed


def as_list(value):
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, abc.KeysView, abc.ValuesView)) else [value]


def nested(function, value, *others):
    """A function on variables, or on those of lists and dicts of one form."""
    if isinstance(value, (list, tuple)):
        return type(value)(nested(function, *each) for each in zip(value, *others))
    if isinstance(value, dict):
        return {key: nested(function, value[key], *(o[key] for o in others)) for key in value}
    return function(value, *others)


def program_of(inputs):
    """The program that an op over these variables belongs to."""
    for value in inputs:
        for v in as_list(value):
            if isinstance(v, Variable):
                return v._program
    return _main


def _check_variables(op, slot, values):
    for v in values:
        if not isinstance(v, Variable):
            raise TypeError(f"{op}: '{slot}' must be a variable of a program, not {type(v).__name__} ({v!r:.60})")


def emit(op, inputs, attrs=None, outputs=None, name=None):
    """Adds an op; returns {slot: [variables]} of its outputs. `inputs` maps slots to a Variable, a list, or None (left
    out); `outputs` maps slots to variables or names that are to be written."""
    program = program_of(inputs.values())
    slots = []
    for slot, value in inputs.items():
        values = as_list(value)
        _check_variables(op, slot, values)
        if values:
            slots.append((slot, [v.name for v in values]))
    dests = [(slot, [v if isinstance(v, str) else v.name for v in as_list(values)])
             for slot, values in (outputs or {}).items()]
    layer = name or unique_name.generate(op)
    lengths = _lengths_of(v for value in inputs.values() for v in as_list(value))
    if lengths is not None and lengths.loose_rows:
        check_loose_rows(op, attrs or {})
    try:
        made = program.builder().op(op, slots, attrs or {}, dests, layer, *user_line())
    except native.InvalidArgumentError:
        if dests or not any(v.dtype == "float64" for value in inputs.values() for v in as_list(value)):
            raise
        return _emit_in_float32(op, inputs, attrs, layer)
    out = {slot: [program._variable(n) for n in names] for slot, names in made.items()}
    if lengths is not None:
        for variables in out.values():
            for v in variables:
                v.lengths = lengths
    return out


def _emit_in_float32(op, inputs, attrs, name):
    """An op that has no float64 computes in float32, and gives float64."""
    narrow = {slot: [in_float32(v) for v in as_list(value)] for slot, value in inputs.items()}
    out = emit(op, narrow, attrs, None, name)
    return {slot: [in_float64(v) for v in variables] for slot, variables in out.items()}


def _as(v, dtype):
    return emit("cast", {"x": v}, {"dtype": dtype})["out"][0]


def in_float32(v):
    return _as(v, "float32") if v.dtype == "float64" else v


def in_float64(v):
    return _as(v, "float64") if v.dtype == "float32" else v


def _lengths_of(variables):
    """Rows that are computed from rows of sequences form the same sequences."""
    return next((v.lengths for v in variables if v.lengths is not None), None)


def call(op, inputs, attrs=None, name=None):
    """Adds an op; returns its `out`."""
    return emit(op, inputs, attrs, None, name)["out"][0]


def layer_call(function, x, options, name):
    """A layer of the C++ side that owns parameters or needs the program's state."""
    _check_variables(function.__name__, "x", [x])
    if x.dtype == "float64":
        return in_float64(layer_call(function, in_float32(x), options, name))
    if x.lengths is not None and x.lengths.loose_rows:
        check_loose_rows(function.__name__, {})
    program = x._program
    out = program._variable(function(program.builder(), x.name, options, name, *user_line()))
    out.lengths = x.lengths
    return out


from paddle._between import refuse_gradients  # noqa: E402
from paddle._unwritten import Unwritten  # noqa: E402,F401
