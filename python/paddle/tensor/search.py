"""Where values are, and their order."""
from paddle import _dtype
from paddle._graph import Variable, call, emit
from paddle._native import native


def _arg(op, x, axis, keepdim, dtype, name):
    if axis is None:
        from paddle.tensor.manipulation import reshape
        x, axis = reshape(x, [-1]), 0
    return call(op, {"x": x}, {"axis": int(axis), "keepdim": bool(keepdim), "dtype": str(_dtype.convert(dtype))}, name)


def argmax(x, axis=None, keepdim=False, dtype="int64", name=None):
    return _arg("argmax", x, axis, keepdim, dtype, name)


def argmin(x, axis=None, keepdim=False, dtype="int64", name=None):
    return _arg("argmin", x, axis, keepdim, dtype, name)


def topk(x, k, axis=None, largest=True, sorted=True, name=None):
    """The k largest (or smallest) values along an axis, and where they are."""
    if isinstance(k, Variable):
        raise native.UnsupportedError("topk: k must be a number")
    made = emit("top_k", {"x": x}, {"k": int(k), "axis": -1 if axis is None else int(axis), "largest": bool(largest)},
                name=name)
    return made["out"][0], made["indices"][0]


def argsort(x, axis=-1, descending=False, name=None):
    return emit("argsort", {"x": x}, {"axis": int(axis), "descending": bool(descending)}, name=name)["indices"][0]


def sort(x, axis=-1, descending=False, name=None):
    return call("argsort", {"x": x}, {"axis": int(axis), "descending": bool(descending)}, name)
