"""variable[key] = value: the variable stands for a new one, with other values at these places, from then on."""
import numpy

from paddle._graph import Variable
from paddle._native import native
from paddle.tensor import creation, manipulation


def set_item(x, key, value):
    if isinstance(key, Variable) and key.dtype == "bool":
        made = manipulation.where(_like(key, x), _as_variable(value, x), x)
    else:
        made = _replaced(x, _ranges(x, key), 0, _as_variable(value, x))
    creation.assign(made, x)


def _as_variable(value, x):
    if not isinstance(value, Variable):
        value = creation.assign(value)
    return value if value.dtype == x.dtype else manipulation.cast(value, x.dtype)


def _like(mask, x):
    """A mask of the first dimensions holds for all elements below them."""
    for _ in range(len(x.shape) - len(mask.shape)):
        mask = manipulation.unsqueeze(mask, -1)
    return mask


def _ranges(x, key):
    """(first, last + 1, is it one index) of every axis; None: all of it."""
    keys = list(key) if isinstance(key, tuple) else [key]
    rank = len(x.shape)
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at:at + 1] = [slice(None)] * (rank - len(keys) + 1)
    if len(keys) > rank:
        raise IndexError(f"'{x.name}' has {rank} dimensions, {len(keys)} indices are given")
    keys += [slice(None)] * (rank - len(keys))
    return [_range(x, axis, k) for axis, k in enumerate(keys)]


def _range(x, axis, key):
    length = x.shape[axis]
    if isinstance(key, slice):
        if key == slice(None):
            return None
        if key.step not in (None, 1) or any(isinstance(k, Variable) for k in (key.start, key.stop)):
            raise native.UnsupportedError(f"'{x.name}'[{key}] = ...: slices have step 1 and numbers as ends")
        if length >= 0:
            first, last, _ = key.indices(length)
            return first, last, False
        return key.start or 0, key.stop, False
    if not isinstance(key, int) or isinstance(key, bool):
        raise native.UnsupportedError(f"'{x.name}'[...] = ...: an index must be a number, a slice, or a variable of bool for "
                                      f"the first dimensions; not {type(key).__name__}. paddle.scatter sets rows by a variable")
    if length >= 0 and not -length <= key < length:
        raise IndexError(f"index {key} is out of range for dimension {axis} of '{x.name}', which has length {length}")
    first = key + length if key < 0 <= length else key
    return first, (first + 1 if first != -1 else None), True


def _replaced(x, ranges, axis, value):
    """x with `value` in the ranges of the axes from `axis` on; along others it is cut and put together again."""
    while axis < len(ranges) and ranges[axis] is None:
        axis += 1
    if axis == len(ranges):
        return manipulation.expand_as(_with_dropped_axes(value, ranges), x)
    first, last, _ = ranges[axis]
    if last is not None and first == last:
        return x  # an empty range
    end = 2**31 - 1
    if axis == 0 and x.shape[0] < 0 <= first and last is not None:  # whether rows follow is not known: set them by number
        rows = _replaced(manipulation.slice(x, [0], [first], [last]), ranges, 1, value)
        return manipulation.scatter(x, creation.assign(numpy.arange(first, last)), rows)
    parts = [_replaced(manipulation.slice(x, [axis], [first], [end if last is None else last]), ranges, axis + 1, value)]
    if first != 0:
        parts.insert(0, manipulation.slice(x, [axis], [0], [first]))
    if last is not None and last != x.shape[axis]:
        parts.append(manipulation.slice(x, [axis], [last], [end]))
    return parts[0] if len(parts) == 1 else manipulation.concat(parts, axis)


def _with_dropped_axes(value, ranges):
    """x[:, 0] has one dimension less than x: the value gets it back, as one of length 1."""
    if tuple(value.shape) == (1,):
        return value
    for axis in reversed(range(len(ranges))):
        place = len(value.shape) - (len(ranges) - 1 - axis)
        if ranges[axis] is not None and ranges[axis][2] and place >= 0:
            value = manipulation.unsqueeze(value, place)
    return value
