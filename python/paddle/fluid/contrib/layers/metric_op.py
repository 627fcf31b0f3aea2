"""Sums for the metrics of click prediction."""
from paddle import tensor as _T
from paddle.tensor.creation import create_global_var as _state


def ctr_metric_bundle(input, label):
    """Sums over all batches so far, each [1]: squared error, absolute error, predictions, predictions of positives
    (q: input * label), positives, examples. Workers add them up by fleet.metrics."""
    label = _T.cast(label, "float32")
    difference = _T.subtract(input, label)
    parts = [("sqrerr", _T.square(difference)), ("abserr", _T.abs(difference)), ("prob", input),
             ("q", _T.multiply(input, label)), ("pos_num", label), ("ins_num", _T.ones_like(label))]
    sums = []
    for name, values in parts:
        total = _state([1], 0.0, "float32", True, name=None)
        total.stop_gradient = True
        part = _T.sum(values)
        part.stop_gradient = True
        sums.append(_T.assign(_T.add(total, part), total))
    return tuple(sums)
