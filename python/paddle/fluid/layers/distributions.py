"""Distributions with parameters that may be variables: densities, entropies, divergences and draws."""
import math

import numpy

from paddle import tensor as T
from paddle._graph import Variable
from paddle.fluid.layers.nn import gaussian_random, uniform_random
from paddle.fluid.layers.sampled import gaussian_random_batch_size_like, uniform_random_batch_size_like
from paddle.nn import functional as F

__all__ = ["Uniform", "Normal", "Categorical", "MultivariateNormalDiag"]


def _variable(value):
    """Numbers, lists and arrays become float32 variables; one number has the shape [1]."""
    return value if isinstance(value, Variable) else T.assign(numpy.atleast_1d(numpy.asarray(value, "float32")))


class _Drawn:
    """A distribution by two parameters of a shape."""

    def __init__(self, first, second):
        self._first, self._second = _variable(first), _variable(second)

    def _draw(self, shape, known, like, **options):
        """As many draws as `shape` says, of each place of the parameters, whose first length may be unknown."""
        both = self._first + self._second
        whole = list(shape) + list(both.shape)
        if both.shape[0] < 0:
            return like(both, whole, input_dim_idx=0, output_dim_idx=len(shape), **options)
        return known(whole, **options)


class Uniform(_Drawn):
    """Of [low, high)."""

    def __init__(self, low, high):
        super().__init__(low, high)
        self.low, self.high = self._first, self._second

    def sample(self, shape, seed=0):
        draws = self._draw(shape, uniform_random, uniform_random_batch_size_like, min=0.0, max=1.0, seed=seed)
        return self.low + (self.high - self.low) * draws

    def log_prob(self, value):
        inside = T.logical_and(T.less_than(self.low, value), T.less_than(value, self.high))
        return T.log(T.cast(inside, "float32")) - self.entropy()

    def entropy(self):
        return T.log(self.high - self.low)


class Normal(_Drawn):
    def __init__(self, loc, scale):
        super().__init__(loc, scale)
        self.loc, self.scale = self._first, self._second

    def sample(self, shape, seed=0):
        return self.loc + self.scale * self._draw(shape, gaussian_random, gaussian_random_batch_size_like, seed=seed)

    def log_prob(self, value):
        return -T.square((value - self.loc) / self.scale) * 0.5 - T.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def entropy(self):
        return T.log(self.scale) + 0.5 * (1 + math.log(2 * math.pi))

    def kl_divergence(self, other):
        ratio = T.square(self.scale / other.scale)
        return 0.5 * (ratio + T.square((self.loc - other.loc) / other.scale) - 1.0 - T.log(ratio))


class Categorical:
    """Of classes by the logarithms of their weights, along the last axis."""

    def __init__(self, logits):
        self.logits = _variable(logits)

    def _logs(self):
        return F.log_softmax(self.logits, axis=-1)

    def entropy(self):
        logs = self._logs()
        return -T.sum(T.exp(logs) * logs, axis=-1, keepdim=True)

    def kl_divergence(self, other):
        logs = self._logs()
        return T.sum(T.exp(logs) * (logs - other._logs()), axis=-1, keepdim=True)


class MultivariateNormalDiag:
    """loc [d], and scale [d, d] of which the diagonal counts: the variances."""

    def __init__(self, loc, scale):
        self.loc, self.scale = _variable(loc), _variable(scale)

    def _variances(self):
        n = self.scale.shape[0]
        return T.sum(self.scale * T.assign(numpy.eye(n, dtype="float32")), axis=-1)

    def entropy(self):
        return 0.5 * (self.scale.shape[0] * (1 + math.log(2 * math.pi)) + T.sum(T.log(self._variances())))

    def kl_divergence(self, other):
        here, there = self._variances(), other._variances()
        apart = T.square(other.loc - self.loc) / there
        return 0.5 * (T.sum(here / there) + T.sum(apart) - self.scale.shape[0] + T.sum(T.log(there)) - T.sum(T.log(here)))
