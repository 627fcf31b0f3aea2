"""Layers of contrib that are made of others."""
from paddle import _param
from paddle import tensor as T
from paddle._native import native
from paddle.tensor import math as _math
from paddle.utils import unique_name

__all__ = ["fused_elemwise_activation", "partial_concat", "partial_sum", "batch_fc", "shuffle_batch"]

_UNARY = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "gelu": "gelu"}
_BINARY = {"elementwise_add": _math._add, "elementwise_mul": _math._multiply}


def fused_elemwise_activation(x, y, functor_list, axis=-1, scale=0.0, save_intermediate_out=True):
    """functor_list[0](functor_list[1]): one of two variables, one of one. (The planner fuses them.)"""
    if isinstance(functor_list, str):
        functor_list = functor_list.split(",")

    def unary(name, value):
        if name == "scale":
            return T.scale(value, scale)
        if name not in _UNARY:
            raise native.InvalidArgumentError(f"fused_elemwise_activation: no functor '{name}'")
        return _math.activate(value, _UNARY[name])

    outer, inner = [name.strip() for name in functor_list]
    if outer in _BINARY:
        return _BINARY[outer](x, unary(inner, y), axis, None)
    if inner not in _BINARY:
        raise native.InvalidArgumentError(f"fused_elemwise_activation: one functor must be {' or '.join(_BINARY)}")
    return unary(outer, _BINARY[inner](x, y, axis, None))


def _columns(input, start_index, length):
    parts = []
    for x in input if isinstance(input, (list, tuple)) else [input]:
        start = start_index if start_index >= 0 else x.shape[1] + start_index
        parts.append(T.slice(x, [1], [start], [x.shape[1] if length < 0 else start + length]))
    return parts


def partial_concat(input, start_index=0, length=-1):
    """Columns [start_index, start_index + length) of all, side by side."""
    return T.concat(_columns(input, start_index, length), 1)


def partial_sum(input, start_index=0, length=-1):
    """Columns [start_index, start_index + length) of all, added up."""
    return T.add_n(_columns(input, start_index, length))


def shuffle_batch(x, seed=None):
    """The rows of x in another order in every step."""
    order = T.argsort(T.uniform([T.shape(x)[0]], "float32", 0.0, 1.0, int(seed or 0)))
    return T.gather(x, order)


def batch_fc(input, param_size, param_attr, bias_size, bias_attr, act=None):
    """A fully connected layer of its own for each slot: [slots, batch, in] -> [slots, batch, out]."""
    layer = unique_name.generate("batch_fc")
    weight = _param.make(param_size, param_attr, layer)
    bias = _param.make(bias_size, bias_attr, layer, is_bias=True)
    return _math.activate(T.add(T.matmul(input, weight), T.unsqueeze(bias, 1)), act)
