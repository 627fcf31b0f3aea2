"""New variables, copies and choices, with the arguments of 1.x."""
from paddle import _dtype
from paddle import tensor as T
from paddle._graph import Variable, as_list, call  # noqa: F401
from paddle._native import native
from paddle.tensor.creation import create_global_var, create_parameter  # noqa: F401

__all__ = ["create_tensor", "create_parameter", "create_global_var", "cast", "concat", "sums", "assign",
           "fill_constant", "fill_constant_batch_size_like", "ones", "zeros", "argmax", "argmin", "argsort", "reverse",
           "zeros_like", "ones_like", "range", "linspace", "eye", "has_inf", "has_nan", "isfinite", "diag"]

cast, linspace = T.cast, T.linspace


def zeros_like(x, out=None):
    made = T.zeros_like(x)
    return made if out is None else T.assign(made, out)


def ones_like(x, out=None):
    made = T.ones_like(x)
    return made if out is None else T.assign(made, out)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """A unit matrix, or one for each place of batch_shape."""
    made = T.eye(num_rows, num_columns, dtype, name)
    return made if not batch_shape else T.expand(made, [int(d) for d in batch_shape] + list(made.shape))


def assign(input, output=None):
    return T.assign(input, output)


def create_tensor(dtype, name=None, persistable=False):
    return create_global_var([1], 0.0, dtype, persistable, name=name)


def concat(input, axis=0, name=None):
    return T.concat(input, axis, name)


def sums(input, out=None):
    total = T.add_n(input)
    return total if out is None else T.assign(total, out)


def fill_constant(shape, dtype, value, force_cpu=False, out=None, name=None):
    made = T.full(shape, float(value), dtype, name)
    return made if out is None else T.assign(made, out)


def fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx=0, output_dim_idx=0, force_cpu=False):
    out = call("fill_batch_like", {"x": input},
               {"shape": [int(d) for d in shape], "value": float(value), "dtype": str(_dtype.convert(dtype)),
                "input_dim": input_dim_idx, "output_dim": output_dim_idx})
    out.stop_gradient = True
    return out


def ones(shape, dtype, force_cpu=False):
    return T.ones(shape, dtype)


def zeros(shape, dtype, force_cpu=False, name=None):
    return T.zeros(shape, dtype, name)


def argmax(x, axis=0):
    return T.argmax(x, axis)


def argmin(x, axis=0):
    return T.argmin(x, axis)


def argsort(input, axis=-1, descending=False, name=None):
    """(sorted values, their places)."""
    return T.sort(input, axis, descending), T.argsort(input, axis, descending, name)


def reverse(x, axis):
    return T.flip(x, axis)


def range(start, end, step, dtype, name=None):
    return T.arange(start, end, step, dtype, name)


def has_inf(x):
    return T.any(T.isinf(x))


def has_nan(x):
    return T.any(T.isnan(x))


def isfinite(x):
    """Are all elements finite? bool [1]."""
    return T.all(T.isfinite(x))


def diag(diagonal):
    """The matrix with this diagonal."""
    return T.diag(diagonal)
