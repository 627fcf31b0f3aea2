"""New variables from nothing, and copies."""
import contextlib

import numpy

from paddle import _dtype
from paddle import _graph
from paddle._graph import Variable, call, emit
from paddle._native import native


def known_shape(shape, what):
    """(numbers, None) or, where lengths are lengths of other variables, (numbers with -1, [(variable, axis, where), ...])."""
    if isinstance(shape, Variable):
        source = shape.dim_of
        if source is None or source[1] is not None:
            raise native.UnsupportedError(f"{what}: a shape that is computed when it runs must come from paddle.shape(x)")
        numbers = list(source[0].shape)  # paddle.shape(x) as a whole
        return numbers, [(source[0], i, i) for i, d in enumerate(numbers) if d < 0] or None
    if not isinstance(shape, (list, tuple)):
        shape = [shape]
    numbers, sources = [], []
    for place, d in enumerate(shape):
        if not isinstance(d, Variable):
            numbers.append(int(d))
            continue
        if d.dim_of is None or d.dim_of[1] is None:
            raise native.UnsupportedError(
                f"{what}: the length '{d.name}' is computed when it runs; only paddle.shape(x)[i] can be one")
        x, axis = d.dim_of
        numbers.append(x.shape[axis])
        if x.shape[axis] < 0:
            sources.append((x, axis, place))
    return numbers, sources or None


def full(shape, fill_value, dtype=None, name=None):
    """All elements are `fill_value`. Lengths may be paddle.shape(x)[i]."""
    if isinstance(fill_value, Variable):
        from paddle.tensor import manipulation
        return manipulation.expand(manipulation.cast(fill_value, dtype or fill_value.dtype), shape)
    dtype = _dtype.convert(dtype or _dtype.get_default_dtype())
    value = float(_dtype.constant(fill_value, dtype))
    numbers, sources = known_shape(shape, "full")
    if sources is None:
        out = call("fill", {}, {"shape": numbers, "value": value, "dtype": str(dtype)}, name)
    else:
        out = _full_by(numbers, sources, value, str(dtype), name)
    out.stop_gradient = True
    return out


def _full_by(numbers, sources, value, dtype, name):
    """An op knows one length of another variable: the others are broadcast from zeros of their lengths."""
    made = []
    for x, axis, place in sources:
        shape = [d if d >= 0 and not made else 1 for d in numbers]
        attrs = {"shape": shape, "value": 0.0 if made else value, "dtype": "int32" if dtype == "bool" else dtype,
                 "input_dim": axis, "output_dim": place}
        made.append(call("fill_batch_like", {"x": x}, attrs, name if len(sources) == 1 else None))
    from paddle.tensor import manipulation, math
    out = made[0]
    for zeros in made[1:]:
        out = math.add(out, zeros)
    return manipulation.cast(out, dtype)


def zeros(shape, dtype=None, name=None):
    return full(shape, 0, dtype, name)


def ones(shape, dtype=None, name=None):
    return full(shape, 1, dtype, name)


def full_like(x, fill_value, dtype=None, name=None):
    dtype = _dtype.convert(dtype or x.dtype)
    attrs = {"value": float(_dtype.constant(fill_value, dtype)), "dtype": str(dtype)}
    out = call("fill_like", {"x": x}, attrs, name)
    out.stop_gradient = True
    return out


def zeros_like(x, dtype=None, name=None):
    return full_like(x, 0, dtype, name)


def ones_like(x, dtype=None, name=None):
    return full_like(x, 1, dtype, name)


empty, empty_like = zeros, zeros_like


def arange(start=0, end=None, step=1, dtype=None, name=None):
    if end is None:
        start, end = 0, start
    if isinstance(end, Variable) and end.dim_of is not None and (start, step) == (0, 1):
        return _count(end, dtype or "int64")
    if any(isinstance(v, Variable) for v in (start, end, step)):
        raise native.UnsupportedError("arange: start, end and step must be numbers; only from 0 on it may end at paddle.shape(x)[i]")
    if dtype is None:
        whole = all(float(v).is_integer() and not isinstance(v, float) for v in (start, end, step))
        dtype = "int64" if whole else _dtype.get_default_dtype()
    attrs = {"start": float(start), "end": float(end), "step": float(step), "dtype": str(_dtype.convert(dtype))}
    return call("arange", {}, attrs, name)


def _count(length, dtype):
    """0, 1, 2, ... as many as a dimension of another variable has."""
    from paddle.tensor import manipulation, math
    ones = full([length], 1, "int64")
    return manipulation.cast(math.subtract(call("cumsum", {"x": ones}, {"axis": 0}), ones), dtype)


def linspace(start, stop, num, dtype=None, name=None):
    return assign(numpy.linspace(start, stop, num).astype(_dtype.convert(dtype or _dtype.get_default_dtype())))


def eye(num_rows, num_columns=None, dtype=None, name=None):
    return assign(numpy.eye(num_rows, num_columns, dtype=_dtype.convert(dtype or _dtype.get_default_dtype())))


_condition = None  # of assignments, inside a Switch


@contextlib.contextmanager
def assign_only_where(condition):
    """Inside, assign(x, output) changes output only where the condition holds when the program runs."""
    global _condition
    old, _condition = _condition, condition
    try:
        yield
    finally:
        _condition = old


def assignment_condition():
    return _condition


def refuse_in_a_side(what):
    """Of what the program would do whatever the condition says, as all sides of a choice run."""
    if _condition is not None:
        raise native.UnsupportedError(
            f"{what} inside of a side of cond, case, switch_case or Switch: all sides run, so parameters would be updated whatever "
            "the condition says; return the loss from the sides, and minimize what cond returns")


def assign(x, output=None):
    """A copy of a variable, an array or a list; into `output` where that is given."""
    if output is not None and _condition is not None:
        from paddle.tensor import manipulation
        condition = _condition
        with assign_only_where(None):
            value = x if isinstance(x, Variable) else assign(x)
            return assign(manipulation.where(condition, value, output), output)
    if output is not None and not output._info["persistable"]:
        # What a step computes is written once: from here on, `output` is another variable.
        return output.become(assign(x))
    if isinstance(x, Variable):
        made = emit("assign", {"x": x}, None, {"out": output} if output is not None else None)["out"][0]
        return output if output is not None else made
    array = numpy.asarray(x)
    if array.dtype == numpy.float64:
        array = array.astype(_dtype.get_default_dtype())
    if array.dtype == object:
        raise TypeError("assign takes a variable, an array, or a list of numbers of one shape")
    if array.ndim == 0:
        array = array.reshape(1)
    attrs = {"shape": list(array.shape), "dtype": str(_dtype.convert(array.dtype)),
             "values": _dtype.constant(array, _dtype.convert(array.dtype)).ravel().tolist()}
    if not attrs["values"]:
        raise ValueError("assign: the array is empty")
    made = emit("assign_value", {}, attrs, {"out": output} if output is not None else None)["out"][0]
    if output is None:
        made.stop_gradient, made.constant = True, array
    return output if output is not None else made


def to_tensor(data, dtype=None, place=None, stop_gradient=True):
    """In a static program: a constant."""
    array = numpy.asarray(data)
    if dtype is not None:
        array = array.astype(_dtype.convert(dtype))
    out = assign(array)
    out.stop_gradient = bool(stop_gradient)
    return out


def create_parameter(shape, dtype="float32", name=None, attr=None, is_bias=False, default_initializer=None):
    from paddle import _param
    attr = _param.ParamAttr._to_attr(attr)
    if name is not None and attr.name is None:
        attr.name = name
    return _param.make(shape, attr, "create_parameter", dtype, is_bias, default_initializer)


def create_global_var(shape, value, dtype, persistable=False, force_cpu=False, name=None):
    """A variable that lives from step to step and starts with `value`. The same name is the same variable."""
    from paddle.utils import unique_name
    program = _graph.default_main_program()
    name = name or unique_name.generate("global_var")
    program.builder().state(name, _dtype.convert(dtype), [int(d) for d in shape], float(value))
    return program._variable(name)


def clone(x, name=None):
    return assign(x)


def _triangle(x, diagonal, keep_lower, name):
    rows, columns = x.shape[-2:]
    from paddle.tensor import logic, manipulation, math
    # Chosen, not multiplied: what is cut off may be infinite, as in masks.
    if rows < 0 or columns < 0:
        ones = full_like(x, 1, "int64")
        right = math.subtract(*(call("cumsum", {"x": ones}, {"axis": len(x.shape) + axis}) for axis in (-1, -2)))
        kept = (logic.less_equal if keep_lower else logic.greater_equal)(right, full_like(right, diagonal))
    else:
        kept = assign((numpy.tril if keep_lower else numpy.triu)(numpy.ones((rows, columns), "bool"), diagonal))
    return manipulation.where(kept, x, zeros_like(x), name)


def tril(x, diagonal=0, name=None):
    return _triangle(x, diagonal, True, name)


def triu(x, diagonal=0, name=None):
    return _triangle(x, diagonal, False, name)


def numel(x, name=None):
    from paddle.tensor.manipulation import shape_product
    return shape_product(x, None)
