"""Layers that the workers of a model-parallel group divide, with the names of later versions. As many workers divide them as
the strategy of fleet.init says (hybrid_configs["mp_degree"]); without one they are whole layers. Parameters are made by
the first call in a program, further calls share them."""
from paddle._graph import Variable, layer_call
from paddle._native import native
from paddle._refuse import refuse
from paddle.distributed.fleet import api
from paddle.utils import unique_name

__all__ = ["ColumnParallelLinear", "RowParallelLinear", "VocabParallelEmbedding", "ParallelCrossEntropy"]


def _degree():
    return 1 if api._strategy is None else api._strategy.in_hybrid_configs().hybrid_configs["mp_degree"]


def _only_the_groups_of_the_job(who, group):
    if group is not None:
        raise refuse(f"{who} with an mp_group", "mp_group=None", "the groups are those of hybrid_configs")


class _Divided:
    def __init__(self, name, kind, mp_group):
        _only_the_groups_of_the_job(type(self).__name__, mp_group)
        self._name = name or unique_name.generate(kind)

    def _split(self, x, size, operation, **options):
        from paddle.distributed.parallel_layers import split
        return split(x, size, operation, num_partitions=_degree(), name=self._name, **options)


class ColumnParallelLinear(_Divided):
    """x [..., in_features] -> [..., out_features], or with gather_output=False the columns of this worker."""

    def __init__(self, in_features, out_features, weight_attr=None, has_bias=None, gather_output=True, fuse_matmul_bias=False,
                 mp_group=None, name=None):
        super().__init__(name, "column_parallel_linear", mp_group)
        self._size, self._weight, self._gather = (in_features, out_features), weight_attr, gather_output
        self._bias = None if has_bias else False

    def __call__(self, x):
        return self._split(x, self._size, "linear", axis=1, gather_out=self._gather, weight_attr=self._weight,
                           bias_attr=self._bias)


class RowParallelLinear(_Divided):
    """[..., in_features], or this worker's part of them (input_is_parallel), -> [..., out_features]."""

    def __init__(self, in_features, out_features, weight_attr=None, has_bias=True, input_is_parallel=False,
                 fuse_matmul_bias=False, mp_group=None, name=None):
        super().__init__(name, "row_parallel_linear", mp_group)
        self._size, self._weight, self._bias = (in_features, out_features), weight_attr, None if has_bias else False
        self._parts = input_is_parallel

    def __call__(self, x):
        width = self._size[0] // (_degree() if self._parts else 1)
        if x.shape[-1] != width:
            raise native.InvalidArgumentError(
                f"RowParallelLinear: x has the width {x.shape[-1]}; with input_is_parallel={self._parts} it must be {width}")
        return self._split(x, self._size, "linear", axis=0, weight_attr=self._weight, bias_attr=self._bias)


class VocabParallelEmbedding(_Divided):
    """Ids -> rows of a table whose rows the workers divide."""

    def __init__(self, num_embeddings, embedding_dim, weight_attr=None, mp_group=None, name=None):
        super().__init__(name, "vocab_parallel_embedding", mp_group)
        self._size, self._weight = (num_embeddings, embedding_dim), weight_attr

    def __call__(self, ids):
        return self._split(ids, self._size, "embedding", weight_attr=self._weight)


class ParallelCrossEntropy:
    """The loss [..., 1] of logits whose classes the workers divide, as ColumnParallelLinear with gather_output=False makes
    them; labels [..., 1] are those of all classes. Nobody ever has all logits."""

    def __init__(self, mp_group=None, name=None, ignore_index=-100):
        _only_the_groups_of_the_job("ParallelCrossEntropy", mp_group)
        self._name, self._ignore = name, int(ignore_index)

    def __call__(self, input, label):
        if not isinstance(input, Variable) or not isinstance(label, Variable):
            raise TypeError("ParallelCrossEntropy: logits and labels must be variables of a program")
        return layer_call(native.parallel_cross_entropy, input,
                          {"label": label.name, "partitions": _degree(), "ignore_index": self._ignore}, self._name or "")
