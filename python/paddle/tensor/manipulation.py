"""Changing the shape, order and choice of elements."""
import builtins

import numpy

from paddle import _between, _dtype
from paddle._graph import Variable, as_list, call, emit
from paddle._native import native
from paddle.tensor import creation


def cast(x, dtype, name=None):
    dtype = _dtype.convert(dtype)
    if isinstance(x, Variable) and x.dtype == dtype:
        return x
    return call("cast", {"x": x}, {"dtype": str(dtype)}, name)


def reshape(x, shape, name=None):
    """0 keeps the dimension of x, one -1 is what is left; a length may be paddle.shape(y)[i], or the whole shape
    paddle.shape(y)."""
    if isinstance(shape, Variable):
        if shape.dim_of is None or shape.dim_of[1] is not None:
            raise native.UnsupportedError("reshape: a shape that is computed when it runs must be paddle.shape(x)")
        return call("reshape_like", {"x": x, "like": shape.dim_of[0]}, name=name)
    numbers, others, axes = [], [], []
    for place, d in enumerate(as_list(shape)):
        if isinstance(d, Variable):
            if d.dim_of is None or d.dim_of[1] is None:
                raise native.UnsupportedError("reshape: a length that is computed when it runs must be paddle.shape(x)[i]")
            other, axis = d.dim_of
            d = other.shape[axis]
            if d < 0 and other is x and axis == place:
                d = 0
            elif d < 0:  # the op looks at the other variable when it runs
                d = -2 - len(others)
                others.append(other)
                axes.append(axis)
        numbers.append(int(d))
    if others:
        return call("reshape_by", {"x": x, "lengths": others}, {"shape": numbers, "axes": axes}, name)
    return call("reshape", {"x": x}, {"shape": numbers}, name)


def flatten(x, start_axis=0, stop_axis=-1, name=None):
    """Dimensions from start_axis to stop_axis become one."""
    rank = len(x.shape)
    start, stop = start_axis % rank, stop_axis % rank
    return call("flatten_range", {"x": x}, {"start": start, "stop": stop}, name)


def transpose(x, perm, name=None):
    return call("transpose", {"x": x}, {"perm": [int(p) % len(x.shape) for p in perm]}, name)


def t(input, name=None):
    if len(input.shape) > 2:
        raise native.InvalidArgumentError(f"t takes a vector or a matrix, '{input.name}' has shape {list(input.shape)}")
    return input if len(input.shape) < 2 else transpose(input, [1, 0], name)


def squeeze(x, axis=None, name=None):
    rank = len(x.shape)
    asked = range(rank) if axis is None else [int(a) for a in as_list(axis)]
    axes = [a for a in asked if x.shape[a % rank] == 1]  # others are left alone, as in the original
    if not axes:
        return x
    if len(axes) == rank:
        return reshape(x, [1], name)
    return call("squeeze", {"x": x}, {"axes": axes}, name)


def unsqueeze(x, axis, name=None):
    return call("unsqueeze", {"x": x}, {"axes": [int(a) for a in as_list(axis)]}, name)


def expand(x, shape, name=None):
    """-1 keeps a dimension."""
    numbers, source = creation.known_shape(shape, "expand")
    if source is not None:
        like = creation.full(shape, 0.0, x.dtype)
        from paddle.tensor import math
        return math.add(x, like)
    return call("expand", {"x": x}, {"shape": numbers}, name)


def broadcast_to(x, shape, name=None):
    return expand(x, shape, name)


def expand_as(x, y, name=None):
    if all(d >= 0 for d in y.shape):
        return expand(x, list(y.shape), name)
    from paddle.tensor import math
    return math.add(x, creation.zeros_like(y, x.dtype), name)


def tile(x, repeat_times, name=None):
    """A number of times may be paddle.shape(y)[i], of a dimension of length 1 where that is not known."""
    times = as_list(repeat_times)
    if any(isinstance(r, Variable) for r in times):
        x, repeat_times = _broadcast(x, times)
    return call("tile", {"x": x}, {"repeats": [int(r) for r in as_list(repeat_times)]}, name)


def _broadcast(x, times):
    """x with the dimensions broadcast that are repeated by an unknown number, and how often the others are repeated."""
    shape, numbers = [1] * len(x.shape), []
    for i, r in enumerate(times, len(x.shape) - len(times)):
        known = r.dim_of[0].shape[r.dim_of[1]] if isinstance(r, Variable) and r.dim_of else r
        if isinstance(known, Variable) or known < 0 and x.shape[i] != 1:
            raise native.UnsupportedError("tile: a number of times that is computed when it runs must be paddle.shape(x)[i], "
                                          "and its dimension must have length 1")
        if known < 0:
            shape[i], known = r, 1
        numbers.append(int(known))
    if not any(isinstance(d, Variable) for d in shape):
        return x, numbers
    from paddle.tensor import math
    return math.add(x, creation.full(shape, 0, x.dtype)), numbers


def concat(x, axis=0, name=None):
    if isinstance(x, Variable):
        return x
    return call("concat", {"xs": list(x)}, {"axis": _number(axis, "concat")}, name)


def stack(x, axis=0, name=None):
    return call("stack", {"xs": as_list(x)}, {"axis": int(axis)}, name)


def _number(value, what):
    if isinstance(value, Variable):
        raise native.UnsupportedError(f"{what}: axis must be a number")
    return int(value)


def _many(op, x, attrs, count, name):
    from paddle.utils import unique_name
    layer = name or unique_name.generate(op)
    names = [unique_name.generate(layer + ".tmp") for _ in range(count)]
    return emit(op, {"x": x}, attrs, {"outs": names}, layer)["outs"]


def split(x, num_or_sections, axis=0, name=None):
    """In so many equal parts, or in parts of given lengths (one may be -1)."""
    axis = _number(axis, "split")
    if isinstance(num_or_sections, int):
        return _many("split", x, {"num": num_or_sections, "axis": axis}, num_or_sections, name)
    sections = [int(s) for s in num_or_sections]
    if -1 in sections:
        length = x.shape[axis % len(x.shape)]
        if length < 0:
            raise native.InvalidArgumentError("split: a section of -1 needs the length of the dimension to be known")
        sections[sections.index(-1)] = length - sum(s for s in sections if s >= 0)
    return _many("split", x, {"sections": sections, "axis": axis}, len(sections), name)


def chunk(x, chunks, axis=0, name=None):
    return split(x, chunks, axis, name)


def unstack(x, axis=0, num=None):
    count = num or x.shape[axis % len(x.shape)]
    if count < 0:
        raise native.InvalidArgumentError("unstack needs the length of the dimension to be known")
    return _many("unstack", x, {"axis": int(axis)}, count, None)


def unbind(input, axis=0):
    return unstack(input, axis)


def slice(input, axes, starts, ends, name=None):
    for values in (starts, ends):
        if any(isinstance(v, Variable) for v in as_list(values)):
            raise native.UnsupportedError("slice: starts and ends must be numbers")
    return call("slice", {"x": input}, {"axes": [int(a) for a in axes], "starts": [int(s) for s in starts],
                                        "ends": [int(e) for e in ends]}, name)


def strided_slice(x, axes, starts, ends, strides, name=None):
    return call("slice", {"x": x}, {"axes": list(axes), "starts": list(starts), "ends": list(ends),
                                    "steps": list(strides)}, name)


_END = 2**31 - 1


def get_item(x, key):
    """x[key]: numbers, slices, ..., None, lists and variables of whole numbers."""
    out = _get_item(x, key)
    if x.constant is not None and isinstance(key, (int, builtins.slice)):
        out.constant = numpy.reshape(x.constant[key], out.shape)
    return out


def _get_item(x, key):
    keys = list(key) if isinstance(key, tuple) else [key]
    if x.dim_of is not None and x.dim_of[1] is None and len(keys) == 1 and isinstance(keys[0], int):
        source = x.dim_of[0]
        out = call("slice", {"x": x}, {"axes": [0], "starts": [keys[0]], "ends": [keys[0] + 1 or _END]})
        out.dim_of = (source, keys[0] % len(source.shape))
        return out
    if len(keys) == 1 and isinstance(keys[0], Variable) and keys[0].dtype == "bool":
        raise native.UnsupportedError("x[mask]: the result's shape depends on values; use paddle.where or masked_fill")
    if any(isinstance(k, (Variable, list, numpy.ndarray)) for k in keys):
        if len(keys) == 1:
            index = keys[0] if isinstance(keys[0], Variable) else creation.assign(numpy.asarray(keys[0], "int64"))
            return gather(x, index)
        raise native.UnsupportedError("x[...] with several index variables; use paddle.gather_nd")
    if Ellipsis in [k for k in keys if not isinstance(k, Variable)]:
        place = next(i for i, k in enumerate(keys) if k is Ellipsis)
        missing = len(x.shape) - sum(k is not None and k is not Ellipsis for k in keys)
        keys[place:place + 1] = [_slice_all()] * missing
    axes, starts, ends, steps, drop, new = [], [], [], [], [], []
    axis, out_axis = 0, 0
    for k in keys:
        if k is None:
            new.append(out_axis)
            out_axis += 1
            continue
        if isinstance(k, (int, numpy.integer)):
            axes.append(axis), starts.append(int(k)), ends.append(int(k) + 1 or _END), steps.append(1)
            drop.append(axis)
        else:
            step = 1 if k.step is None else int(k.step)
            if k.start is not None or k.stop is not None or step != 1:
                low = (0 if step > 0 else _END) if k.start is None else int(k.start)
                high = (_END if step > 0 else -_END) if k.stop is None else int(k.stop)
                axes.append(axis), starts.append(low), ends.append(high), steps.append(step)
            out_axis += 1
        axis += 1
    out = x
    if axes:
        attrs = {"axes": axes, "starts": starts, "ends": ends}
        if any(s != 1 for s in steps):
            attrs["steps"] = steps
        out = call("slice", {"x": x}, attrs)
    if drop:
        out = call("squeeze", {"x": out}, {"axes": drop}) if len(drop) < len(x.shape) else reshape(out, [1])
    for place in new:
        out = unsqueeze(out, place)
    return out


def _slice_all():
    return builtins.slice(None)


def gather(x, index, axis=0, name=None):
    if len(index.shape) == 2 and index.shape[1] == 1:
        index = reshape(index, [-1])
    return call("gather", {"x": x, "index": index}, {"axis": _number(axis or 0, "gather")}, name)


def index_select(x, index, axis=0, name=None):
    return gather(x, index, axis, name)


def gather_nd(x, index, name=None):
    return call("gather_nd", {"x": x, "index": index}, name=name)


def scatter(x, index, updates, overwrite=True, name=None):
    return call("scatter", {"x": x, "index": index, "updates": updates}, {"overwrite": bool(overwrite)}, name)


def flip(x, axis, name=None):
    return call("flip", {"x": x}, {"axes": [int(a) for a in as_list(axis)]}, name)


reverse = flip


def roll(x, shifts, axis=None, name=None):
    if axis is None:
        raise native.UnsupportedError("roll needs an axis")
    for shift, a in zip(as_list(shifts), as_list(axis)):
        length = x.shape[a]
        if length < 0:
            raise native.UnsupportedError("roll needs the length of the dimension to be known")
        cut = (-shift) % length
        if cut:
            x = concat([slice(x, [a], [cut], [length]), slice(x, [a], [0], [cut])], a)
    return x


def where(condition, x=None, y=None, name=None):
    if x is None or y is None:
        if x is not None or y is not None:
            raise ValueError("where: give x and y, or neither")
        return nonzero(condition, as_tuple=True)
    from paddle.tensor import math
    x, y = math.operands(x, y)
    if not x.shape == y.shape == condition.shape:
        from paddle.tensor import creation
        # Has the shape that all three are broadcast to.
        whole = math.add(math.add(creation.zeros_like(condition, x.dtype), creation.zeros_like(x)),
                         creation.zeros_like(y, x.dtype))
        x, y = [v if v.shape == whole.shape else expand_as(v, whole) for v in (x, y)]
        if condition.shape != whole.shape:
            condition = cast(expand_as(cast(condition, "float32"), whole), "bool")
    return call("where", {"cond": condition, "x": x, "y": y}, name=name)


def masked_fill(x, mask, value, name=None):
    return call("masked_fill", {"x": x, "mask": mask}, {"value": float(value)}, name)


def shape(input, name=None):
    """The shape, known when it runs: int32 [rank]."""
    out = call("shape", {"x": input}, {"dtype": "int32"}, name)
    out.stop_gradient = True
    out.dim_of = (input, None)
    return out


def shape_product(x, axis):
    """Number of elements along `axis` (None: all), int64 [1]."""
    from paddle.tensor import math
    lengths = call("shape", {"x": x}, {"dtype": "int64"})
    if axis is not None:
        lengths = gather(lengths, creation.assign(numpy.array([a % len(x.shape) for a in as_list(axis)], "int64")))
    return math.prod(lengths)


def rank(input):
    return creation.assign(numpy.array([len(input.shape)], "int32"))


def one_hot(x, num_classes, name=None):
    return call("one_hot", {"x": x}, {"depth": int(num_classes)}, name)


def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None):
    """The different elements (of an axis: slices), sorted; and on request the place of the first of each, which of them
    every element is, and how often each is there. For inference: no gradient goes through it."""
    if axis is not None and not -len(x.shape) <= axis < len(x.shape):
        raise ValueError(f"unique: axis={axis} of '{x.name}' {list(x.shape)}")
    flags = [True, return_index, return_inverse, return_counts]
    shape = [-1] if axis is None else [-1 if i == axis % len(x.shape) else d for i, d in enumerate(x.shape)]

    def find(value):
        found = numpy.unique(value, True, True, True, axis=axis)
        return [found[0]] + [part.reshape(-1) for part, wanted in zip(found[1:], flags[1:]) if wanted]
    made = _between.value_step("unique", find, [x], [(x.dtype, shape)] + [(dtype, [-1])] * sum(map(bool, flags[1:])))
    return made[0] if len(made) == 1 else tuple(made)


def nonzero(x, as_tuple=False):
    """Places of the elements that are not 0: [count, rank], or a tuple of [count, 1] for each axis. For inference: no
    gradient goes through it."""
    made = _between.value_step("nonzero", lambda value: [numpy.argwhere(value)], [x], [("int64", [-1, len(x.shape)])])[0]
    return tuple(slice(made, [1], [i], [i + 1]) for i in range(len(x.shape))) if as_tuple else made


def masked_select(x, mask, name=None):
    """The elements where the mask holds, [count]. For inference: no gradient goes through it; to train, multiply by the mask,
    or use where."""
    return _between.value_step("masked_select", lambda value, chosen: [value[numpy.broadcast_to(chosen, value.shape)]], [x, mask],
                               [(x.dtype, [-1])])[0]


def take_along_axis(arr, indices, axis, broadcast=True, name=None):
    """out[i, j, ...] = arr[..., indices[i, j, ...], ...], the index in the place of `axis`."""
    from paddle.tensor import creation, math
    axis %= len(arr.shape)
    wanted = [i if d == axis else a for d, (a, i) in enumerate(zip(arr.shape, indices.shape))]
    if broadcast and any(i == 1 != w for i, w in zip(indices.shape, wanted)):
        indices = expand(indices, wanted)
    flat = cast(indices, "int64")
    one = creation.ones_like(flat)
    places = [flat if d == axis else math.subtract(call("cumsum", {"x": one}, {"axis": d}), one)
              for d in range(len(arr.shape))]
    return gather_nd(arr, stack(places, -1), name)


def index_sample(x, index):
    """Of every row of x, the elements that the row of index names."""
    return take_along_axis(x, index, 1)


def repeat_interleave(x, repeats, axis=None, name=None):
    """Every element, or slice along an axis, so many times in a row."""
    if axis is None:
        x, axis = flatten(x, 0, -1), 0
    axis %= len(x.shape)
    times = [1] * (len(x.shape) + 1)
    times[axis + 1] = int(repeats)
    repeated = tile(unsqueeze(x, axis + 1), times)
    return reshape(repeated, [d * int(repeats) if i == axis and d > 0 else d for i, d in enumerate(x.shape)], name)


def scatter_nd_add(x, index, updates, name=None):
    """x plus every update at the place that its row of index names."""
    from paddle.tensor import math
    return math.add(x, scatter_nd(index, updates, x.shape), name)


def scatter_nd(index, updates, shape, name=None):
    """Zeros of this shape, plus every update at the place that its row of index names."""
    from paddle.tensor import creation, math
    depth = index.shape[-1]
    shape = [int(d) for d in shape]
    if any(d < 0 for d in shape):
        raise native.UnsupportedError(f"scatter_nd: the shape {shape} must be known")
    strides = [1] * depth
    for d in range(depth - 1, 0, -1):
        strides[d - 1] = strides[d] * shape[d]
    weights = creation.assign(numpy.array(strides, "int64"))
    rows = reshape(math.sum(math.multiply(cast(index, "int64"), weights), -1), [-1])
    rest = shape[depth:]
    zeros = creation.zeros([int(numpy.prod(shape[:depth]))] + rest, updates.dtype)
    return reshape(scatter(zeros, rows, reshape(updates, [-1] + rest), False), shape, name=name)


def crop(x, shape=None, offsets=None, name=None):
    """The block of this shape (-1: all that is left) that begins at the offsets."""
    offsets = list(offsets) if offsets is not None else [0] * len(x.shape)
    shape = list(shape) if shape is not None else list(x.shape)
    axes = [i for i, d in enumerate(shape) if d >= 0 or offsets[i]]
    ends = [offsets[i] + shape[i] if shape[i] >= 0 else 2**31 - 1 for i in axes]
    return slice(x, axes, [offsets[i] for i in axes], ends, name)


def shard_index(input, index_num, nshards, shard_id, ignore_value=-1):
    """Ids of this shard, counted from its beginning; others become ignore_value."""
    from paddle.tensor import creation, logic, math
    size = (index_num + nshards - 1) // nshards
    first = creation.full([1], size * shard_id, input.dtype)
    beyond = creation.full([1], size * (shard_id + 1), input.dtype)
    mine = logic.logical_and(logic.greater_equal(input, first), logic.less_than(input, beyond))
    return where(mine, math.subtract(input, first), creation.full_like(input, ignore_value))
