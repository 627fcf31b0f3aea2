"""The ops and variables of a program, to look at and to add to."""
from paddle import _dtype, _graph, _refuse
from paddle._native import native
from paddle.utils import unique_name


class Operator:
    """One op of a program, to look at."""

    def __init__(self, block, info):
        self.block = block
        self._info = info
        self.type = info["type"]

    def input(self, name):
        return self._info["inputs"][name]

    def output(self, name):
        return self._info["outputs"][name]

    @property
    def input_names(self):
        return list(self._info["inputs"])

    @property
    def output_names(self):
        return list(self._info["outputs"])

    @property
    def input_arg_names(self):
        return [n for names in self._info["inputs"].values() for n in names]

    @property
    def output_arg_names(self):
        return [n for names in self._info["outputs"].values() for n in names]

    def attr(self, name):
        return self._info["attrs"][name]

    def has_attr(self, name):
        return name in self._info["attrs"]

    @property
    def attr_names(self):
        return list(self._info["attrs"])

    def all_attrs(self):
        return dict(self._info["attrs"])

    def __repr__(self):
        outs, ins = ", ".join(self.output_arg_names), ", ".join(self.input_arg_names)
        return f"{outs} = {self.type}({ins})"


class Block:
    """The ops and variables of a program. (Programs have one block: there is no control flow inside.)"""

    idx = 0
    parent_idx = -1

    def __init__(self, program):
        self.program = program

    @property
    def ops(self):
        return [Operator(self, info) for info in self.program.ir.ops()]

    @property
    def vars(self):
        return {name: self.program._variable(name) for name in self.program.ir.vars()}

    def var(self, name):
        if not self.has_var(name):
            raise ValueError(f"the program has no variable '{name}'")
        return self.program._variable(self.program.known_name(name) or name)

    def has_var(self, name):
        return self.program.known_name(name) is not None or isinstance(self.program._variables.get(name), _graph.Unwritten)

    _find_var_recursive = _var_recursive = lambda self, name: self.var(name) if self.has_var(name) else None

    def all_parameters(self):
        return self.program.all_parameters()

    iter_parameters = all_parameters

    def create_var(self, name=None, shape=None, dtype="float32", type=None, lod_level=0, persistable=False,
                   stop_gradient=None, initializer=None):
        """persistable: a variable that lives from step to step and starts with what `initializer` says, or zeros. Otherwise
        one that an op of append_op will write. Gradients go through the latter unless stop_gradient says no."""
        stop_gradient = bool(persistable) if stop_gradient is None else stop_gradient
        if type == "raw":
            raise native.UnsupportedError("Block.create_var: type=RAW, as of an NCCL id, is not here: workers find each other by "
                                          "fleet.init, or by a DistributeTranspiler whose config.mode is 'nccl2'")
        if type not in (None, "lod_tensor") or lod_level:
            raise native.UnsupportedError(f"Block.create_var: type={type!r}, lod_level={lod_level}: a plain tensor is made")
        if name is not None and self.program.ir.has(name):
            return self.program._variable(name)
        dtype, given = None if dtype is None else _dtype.convert(dtype), name is not None
        name = name or unique_name.generate("_generated_var")
        if not persistable:
            return self.program._variables.setdefault(
                name, _graph.Unwritten(self.program, name, dtype, shape, given, stop_gradient))
        if shape is None:
            raise native.InvalidArgumentError(f"Block.create_var: '{name}' is persistable and needs a shape")
        self.program.builder().state(name, dtype or "float32", [int(d) for d in shape], 0.0)
        variable = self.program._variable(name)
        variable.stop_gradient = stop_gradient
        if initializer is not None:
            is_startup = self.program is _graph.default_main_program().started_by()
            initializer.fill(self.program if is_startup else self.program.started_by(), variable)
        return variable

    def create_parameter(self, name=None, shape=None, dtype="float32", initializer=None, trainable=True, regularizer=None,
                         optimize_attr=None, need_clip=True, stop_gradient=False, attr=None):
        """A parameter; one of the same name is shared. optimize_attr may have a learning_rate."""
        from paddle import _param
        if shape is None:
            raise native.InvalidArgumentError("Block.create_parameter needs a shape")
        if attr is None:
            attr = _param.ParamAttr(name, initializer, (optimize_attr or {}).get("learning_rate", 1.0), regularizer,
                                    trainable and not stop_gradient, need_clip=need_clip)
        return _param.make(shape, attr, "create_parameter", dtype, program=self.program)

    def _clone_variable(self, var, force_persistable=True):
        """A variable of this program like `var`, which is one of another program: of its name, shape and type. A
        parameter, or what lives from step to step, becomes what lives from step to step; so does, with
        force_persistable, what is computed, where its shape is known."""
        if self.program.ir.has(var.name):
            return self.program._variable(var.name)
        if var.is_data:
            from paddle import static
            with _graph.program_guard(self.program, self.program._startup):
                return static.data(var.name, var.shape, var.dtype, var.lod_level)
        lives = (force_persistable or var.persistable) and min(var.shape, default=0) >= 0
        return self.create_var(var.name, var.shape, var.dtype, persistable=lives, stop_gradient=True)

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None, stop_gradient=False):
        """Adds an op by the original's name, slots and attributes (paddle._original_ops lists them). Its outputs are
        variables of create_var, or others, which are assigned to."""
        from paddle import _original_ops
        _original_ops.append(self, type, inputs, outputs, attrs)
        if stop_gradient:
            for values in (outputs or {}).values():
                for v in _graph.as_list(values):
                    (self.var(v) if isinstance(v, str) else v).stop_gradient = True
        return self.ops[-1]

    _insert_op = _refuse.refused("paddle.fluid.framework.Block._insert_op", "append_op", "ops are added at the end")
    _prepend_op = _refuse.refused("paddle.fluid.framework.Block._prepend_op", "append_op", "ops are added at the end")
    _remove_op = _refuse.refused("paddle.fluid.framework.Block._remove_op", "a strategy of fleet (docs/strategy.md)",
                                 "programs are rewritten by strategies only")

    def __repr__(self):
        return self.program.to_string()
