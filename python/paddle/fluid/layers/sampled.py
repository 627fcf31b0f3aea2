"""Layers of 1.x that draw: losses over some of many classes, samples, and random values for a batch."""
import math as _math

from paddle import _param
from paddle import tensor as T
from paddle._native import native
from paddle.nn import functional as F
from paddle.utils import unique_name

__all__ = ["gaussian_random_batch_size_like", "nce", "sampled_softmax_with_cross_entropy", "sampling_id",
           "uniform_random_batch_size_like"]


def _for_batch(input, shape, input_dim_idx, output_dim_idx):
    shape = list(shape)
    shape[output_dim_idx] = T.shape(input)[input_dim_idx]
    return shape


def uniform_random_batch_size_like(input, shape, dtype="float32", input_dim_idx=0, output_dim_idx=0, min=-1.0, max=1.0,
                                   seed=0):
    return T.uniform(_for_batch(input, shape, input_dim_idx, output_dim_idx), dtype, min, max, seed)


def gaussian_random_batch_size_like(input, shape, input_dim_idx=0, output_dim_idx=0, mean=0.0, std=1.0, seed=0,
                                    dtype="float32"):
    shape = _for_batch(input, shape, input_dim_idx, output_dim_idx)
    return T.random._random("gaussian", shape, mean, std, seed, dtype, None)


def sampling_id(x, min=0.0, max=1.0, seed=0, dtype="float32"):
    """For each row of probabilities the index of one class, drawn by them. As many draws as rows."""
    if (min, max) != (0.0, 1.0) or seed:
        raise native.UnsupportedError("sampling_id: min, max and seed are not here; draws follow the program's seed")
    return T.cast(T.reshape(T.multinomial(x, 1, True), [-1]), dtype)


class _Sampler:
    """Classes drawn for each row, and how many of so many draws give a class."""

    def __init__(self, kind, classes, draws):
        if kind not in ("uniform", "log_uniform"):
            raise native.UnsupportedError(f"nce: sampler={kind!r} is not here; nearest: 'uniform' or 'log_uniform'")
        self._by_log, self._classes, self._draws = kind == "log_uniform", classes, draws

    def draw(self, like, seed):
        share = T.uniform([T.shape(like)[0], self._draws], "float32", 0.0, 1.0, seed)
        if self._by_log:
            drawn = T.scale(T.exp(T.scale(share, _math.log(self._classes + 1))), 1.0, -1.0)
        else:
            drawn = T.scale(share, float(self._classes))
        ids = T.cast(T.floor(T.clip(drawn, 0.0, float(self._classes - 1))), "int64")  # rounding may give the end
        ids.stop_gradient = True
        return ids

    def expected(self, ids):
        ids = T.cast(ids, "float32")
        if not self._by_log:
            return T.full_like(ids, self._draws / self._classes)
        share = T.log(T.divide(T.scale(ids, 1.0, 2.0), T.scale(ids, 1.0, 1.0)))
        return T.scale(share, self._draws / _math.log(self._classes + 1))


def nce(input, label, num_total_classes, sample_weight=None, param_attr=None, bias_attr=None, num_neg_samples=None, name=None,
        sampler="uniform", custom_dist=None, seed=0, is_sparse=False):
    """[batch, 1]: what it costs to tell the labels from classes that are drawn."""
    if custom_dist is not None:
        raise native.UnsupportedError("nce: custom_dist is not here; nearest: sampler='uniform' or 'log_uniform'")
    layer, classes = name or unique_name.generate("nce"), int(num_total_classes)
    weight = _param.make([classes, input.shape[1]], param_attr, layer)
    bias = _param.make([classes, 1], bias_attr, layer, is_bias=True)
    draws = _Sampler(sampler, classes, int(num_neg_samples or 10))
    right = T.cast(T.reshape(label, [-1, label.shape[1] if len(label.shape) > 1 else 1]), "int64")
    ids = T.concat([right, draws.draw(input, seed)], 1)
    logits = T.sum(T.multiply(F.embedding(ids, weight, sparse=is_sparse), T.unsqueeze(input, 1)), -1)
    if bias is not None:
        logits = T.add(logits, T.squeeze(F.embedding(ids, bias, sparse=is_sparse), -1))
    share, expected = F.sigmoid(logits), draws.expected(ids)
    together, labels = T.log(T.add(share, expected)), right.shape[1]
    costs = T.concat([T.subtract(T.slice(together, [1], [0], [labels]), T.log(T.slice(share, [1], [0], [labels]))),
                      T.subtract(T.slice(together, [1], [labels], [2**31 - 1]),
                                 T.log(T.slice(expected, [1], [labels], [2**31 - 1])))], 1)
    cost = T.sum(costs, 1, keepdim=True)
    return cost if sample_weight is None else T.multiply(cost, T.reshape(sample_weight, [-1, 1]))


def sampled_softmax_with_cross_entropy(logits, label, num_samples, num_true=1, remove_accidental_hits=True,
                                       use_customized_samples=False, customized_samples=None,
                                       customized_probabilities=None, seed=0):
    """[batch, 1]: the cross entropy of the label among num_samples classes that are drawn, lower ones more often. A class
    may be drawn twice."""
    if use_customized_samples or customized_samples is not None or customized_probabilities is not None or num_true != 1:
        raise native.UnsupportedError("sampled_softmax_with_cross_entropy: customized samples and num_true > 1 are not here")
    classes = logits.shape[1]
    draws, label = _Sampler("log_uniform", classes, int(num_samples)), T.cast(T.reshape(label, [-1, 1]), "int64")
    drawn = draws.draw(logits, seed)
    ids = T.concat([label, drawn], 1)
    one = T.ones([T.shape(logits)[0], 1], "int64")
    first = T.scale(T.subtract(T.cumsum(one, 0), one), float(classes))
    chosen = T.gather(T.reshape(logits, [-1, 1]), T.reshape(T.add(ids, first), [-1]))
    chosen = T.subtract(T.reshape(chosen, [-1, 1 + int(num_samples)]), T.log(draws.expected(ids)))
    if remove_accidental_hits:
        hit = T.concat([T.zeros_like(label), T.cast(T.equal(drawn, label), "int64")], 1)
        chosen = T.subtract(chosen, T.scale(T.cast(hit, "float32"), 1e20))
    return F.softmax_with_cross_entropy(chosen, T.zeros_like(label))
