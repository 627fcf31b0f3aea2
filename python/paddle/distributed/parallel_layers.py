"""Layers whose parameters the workers of a model-parallel group divide."""
import copy

import numpy

from paddle._graph import Variable, layer_call
from paddle._native import native
from paddle._param import ParamAttr
from paddle.nn.initializer import Assign
from paddle.static.nn import Names


def split(x, size, operation, axis=0, num_partitions=1, gather_out=True, weight_attr=None, bias_attr=None, name=None):
    """A layer of which each of num_partitions workers (hybrid_configs["mp_degree"]) has a part: "linear" with a weight
    of `size` (rows, columns), divided by rows (axis 0) or columns (axis 1), or "embedding" with a table of `size`, by
    rows. Together they compute what paddle.static.nn.fc or embedding computes. By columns with gather_out=False the
    result is the part of this worker, of width columns / num_partitions, as a following layer by rows takes it. Parameters are
    described as whole ones; Assign may have the values of this worker's part only, if it has on all workers."""
    if not isinstance(x, Variable):
        raise TypeError(f"split: the input must be a variable of a program, not {type(x).__name__}")
    if operation not in ("linear", "embedding"):
        raise native.InvalidArgumentError(f"split: operation must be 'linear' or 'embedding', got {operation!r}")
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise native.InvalidArgumentError(f"split: size must be two numbers, rows and columns, got {size!r}")
    rows, columns = [int(n) for n in size]
    if operation == "embedding":
        return _embedding(x, rows, columns, axis, num_partitions, weight_attr, name)
    names = Names("fc", name, x.program)
    weight = names.parameter(_whole(weight_attr, [rows, columns], int(axis), num_partitions), [rows, columns])
    bias_attr = _whole(bias_attr, [columns], 0, num_partitions if axis == 1 else 1)
    bias = names.parameter(bias_attr, [columns], "b")
    options = {"rows": rows, "columns": columns, "axis": int(axis), "partitions": int(num_partitions),
               "gather_out": bool(gather_out), "bias": bias is not None}
    if weight is None:
        raise native.InvalidArgumentError("split: weight_attr=False: a linear layer needs its weight")
    options["weight_attr"] = weight
    if bias is not None:
        options["bias_attr"] = bias
    out = layer_call(native.parallel_linear, x, options, names.layer)
    names.remember()
    return out


def _embedding(ids, rows, dim, axis, num_partitions, weight_attr, name):
    if axis != 0:
        raise native.InvalidArgumentError(f"split: an embedding is divided by rows, axis must be 0, got {axis}")
    names = Names("embedding", name, ids.program)
    weight = names.parameter(_whole(weight_attr, [rows, dim], 0, num_partitions), [rows, dim])
    if weight is None:
        raise native.InvalidArgumentError("split: weight_attr=False: the table is the only parameter of an embedding")
    options = {"rows": rows, "dim": dim, "partitions": int(num_partitions), "weight_attr": weight}
    out = layer_call(native.parallel_embedding, ids, options, names.layer)
    names.remember()
    return out


def _whole(attr, shape, axis, parts):
    """In the original each worker makes its part of a parameter, and gives Assign the values of that. Those of the group
    together are the whole."""
    attr = ParamAttr._to_attr(attr)
    init = attr.initializer if attr else None
    part = [n // parts if i == axis else n for i, n in enumerate(shape)]
    if parts == 1 or not isinstance(init, Assign) or list(init.value.shape) != part:
        return attr
    from paddle.distributed.fleet import util, worker_index, worker_num
    if worker_num() % parts:
        raise native.InvalidArgumentError(f"split: Assign has a part of {part} of a parameter of {shape}, and {worker_num()} "
                                          f"workers are no groups of {parts}; give the whole, or start more workers")
    first = worker_index() // parts * parts
    attr = copy.copy(attr)
    attr.initializer = Assign(numpy.concatenate(util.all_gather(init.value)[first:first + parts], axis))
    return attr
