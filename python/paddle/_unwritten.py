"""Variables that an op of Block.append_op will write."""
from paddle._graph import Variable, emit
from paddle._native import native


class Unwritten(Variable):
    """A variable that an op of Block.append_op will write. Until then it has the shape and type that it was declared
    with, if any. Where its name was chosen by the script, it keeps it."""

    def __init__(self, program, name, dtype=None, shape=None, keeps_name=False, stop_gradient=False):
        super().__init__(program, name)
        self._declared = dtype, shape
        self._keeps_name, self._stop = keeps_name, stop_gradient

    @property
    def is_written(self):
        return self._program.ir.has(self.name)

    def take(self, value):
        """`value` was computed for this variable."""
        if self._keeps_name:
            emit("assign", {"x": value}, None, {"out": [self.name]})
            self._program._variables[self.name] = self
        else:
            self.become(value)
        self.lengths = value.lengths
        if self._stop:
            Variable.stop_gradient.fset(self, True)

    @property
    def _info(self):
        if not self.is_written:
            raise native.InvalidArgumentError(f"'{self.name}' has no value: no op writes it yet")
        return self._program.ir.var(self.name)

    @property
    def shape(self):
        return Variable.shape.fget(self) if self.is_written else tuple(self._declared[1] or ())

    @property
    def dtype(self):
        return Variable.dtype.fget(self) if self.is_written or self._declared[0] is None else self._declared[0]

    def __bool__(self):
        return True if not self.is_written else super().__bool__()

    @property
    def stop_gradient(self):
        return Variable.stop_gradient.fget(self) if self.is_written else self._stop

    @stop_gradient.setter
    def stop_gradient(self, stop):
        self._stop = bool(stop)
        if self.is_written:
            Variable.stop_gradient.fset(self, stop)

    def to_string(self, throw_on_error=True, with_details=False):
        return super().to_string() if self.is_written else f"var {self.name} : not written yet"
