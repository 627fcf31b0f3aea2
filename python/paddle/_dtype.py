"""Data types: strings that NumPy understands and that print like the original's."""
import numpy

from paddle._native import native


class dtype(str):
    def __repr__(self):
        return f"paddle.{str(self)}"


float16, float32, float64 = dtype("float16"), dtype("float32"), dtype("float64")
bfloat16 = dtype("bfloat16")  # NumPy has none: what is fetched is float32
int32, int64, uint8, bool_ = dtype("int32"), dtype("int64"), dtype("uint8"), dtype("bool")
_KNOWN = {str(t): t for t in (float16, bfloat16, float32, float64, int32, int64, uint8, bool_)}
_ALIASES = {"float": "float32", "double": "float64", "int": "int64", "half": "float16", "fp32": "float32",
            "fp16": "float16", "bf16": "bfloat16", "fp64": "float64", "bool_": "bool"}

_default = float32


def convert(value):
    """A dtype from anything that names one: "float32", numpy.int64, paddle.float32, a Variable's dtype."""
    if isinstance(value, dtype):
        return value
    if value is bool:
        return bool_
    if value is float:
        return float32
    if value is int:
        return int64
    name = value if isinstance(value, str) else None
    if name is None:
        try:
            name = numpy.dtype(value).name
        except TypeError:
            raise TypeError(f"{value!r} is not a data type") from None
    name = _ALIASES.get(name, name)
    if name not in _KNOWN:
        raise native.InvalidArgumentError(
            f"'{name}' is not a data type that FleetX has; known: {' '.join(sorted(_KNOWN))}")
    return _KNOWN[name]


def set_default_dtype(value):
    global _default
    value = convert(value)
    if value not in ("float32", "float64", "float16"):
        raise TypeError(f"the default data type must be a float, not {value}")
    _default = value


def get_default_dtype():
    return str(_default)


def is_float(value):
    return value in ("float32", "float64", "float16", "bfloat16")


def constant(values, of):
    """Numbers as ops keep them, doubles, for variables of this type. A whole number that no double holds is refused
    instead of rounded."""
    if is_float(of):
        return numpy.asarray(values, "float64")
    given = numpy.asarray(values)
    kept = given.astype("float64")
    if given.dtype.kind in "iuO" and kept.size and numpy.abs(kept).max() >= 2.0 ** 53:
        for number, double in zip(given.ravel().tolist(), kept.ravel().tolist()):
            if int(double) != number or not -2 ** 63 <= number < 2 ** 63:
                raise native.InvalidArgumentError(
                    f"{number} cannot be a constant: a program keeps constants as doubles, which do not hold every whole "
                    f"number beyond 2**53; feed it as an int64 variable")
    return kept
