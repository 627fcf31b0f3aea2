"""Metrics over all workers: statistics are added up, then the formula is applied."""
import numpy

from paddle._graph import Variable
from paddle.distributed.fleet import api
from paddle.metric import area


def _value(input, scope):
    if isinstance(input, str) or isinstance(input, Variable):
        from paddle._executor import global_scope
        name = input if isinstance(input, str) else input.name
        return (scope or global_scope()).find_var(name).get_tensor().numpy()
    return numpy.asarray(input)


def _reduced(input, mode, scope, util):
    array = numpy.array(_value(input, scope))
    shape = array.shape
    return numpy.asarray((util or api.util).all_reduce(array.reshape(-1), mode)).reshape(shape)


def sum(input, scope=None, util=None):
    return _reduced(input, "sum", scope, util)


def max(input, scope=None, util=None):
    return _reduced(input, "max", scope, util)


def min(input, scope=None, util=None):
    return _reduced(input, "min", scope, util)


def auc(stat_pos, stat_neg, scope=None, util=None):
    """From the states of static.auc; 0.5 where one class is absent."""
    pos, neg = _reduced(stat_pos, "sum", scope, util).reshape(-1), _reduced(stat_neg, "sum", scope, util).reshape(-1)
    return 0.5 if pos.sum() == 0 or neg.sum() == 0 else area(pos, neg)


def _ratio(part, total, scope, util):
    return float(_reduced(part, "sum", scope, util).reshape(-1)[0]) / float(
        _reduced(total, "sum", scope, util).reshape(-1)[0])


def acc(correct, total, scope=None, util=None):
    return _ratio(correct, total, scope, util)


def mae(abserr, total_ins_num, scope=None, util=None):
    return _ratio(abserr, total_ins_num, scope, util)


def mse(sqrerr, total_ins_num, scope=None, util=None):
    return _ratio(sqrerr, total_ins_num, scope, util)


def rmse(sqrerr, total_ins_num, scope=None, util=None):
    return _ratio(sqrerr, total_ins_num, scope, util) ** 0.5
