"""Text and numbers the same in Python 2 and 3, as scripts of 1.x asked for them."""
import math

__all__ = ["long_type", "int_type", "to_text", "to_bytes", "round", "floor_division", "get_exception_message"]

long_type = int_type = int


def _each(obj, inplace, convert):
    """convert() of a value, or of the values of a list, set or dict."""
    if isinstance(obj, (list, set)):
        made = type(obj)(convert(item) for item in obj)
    elif isinstance(obj, dict):
        made = {convert(key): convert(value) for key, value in obj.items()}
    else:
        return convert(obj)
    if not inplace:
        return made
    obj.clear()
    (obj.extend if isinstance(obj, list) else obj.update)(made)
    return obj


def to_text(obj, encoding="utf-8", inplace=False):
    """bytes decoded; anything else as it is; of a list, set or dict, what is in it."""
    return _each(obj, inplace, lambda value: value.decode(encoding) if isinstance(value, bytes) else value)


def to_bytes(obj, encoding="utf-8", inplace=False):
    """str encoded; anything else as it is; of a list, set or dict, what is in it."""
    return _each(obj, inplace, lambda value: value.encode(encoding) if isinstance(value, str) else value)


def round(x, d=0):
    """Halves are rounded away from zero, as in Python 2."""
    step = 10 ** d
    return math.copysign(math.floor(abs(x) * step + 0.5) / step, x) if math.isfinite(x) and x else x


def floor_division(x, y):
    return x // y


def get_exception_message(exc):
    return str(exc)
