"""DeepFM: a factorization machine and layers over the same rows."""
from typing import Sequence

import paddle
from fleetx.applications.click import ClickModel
from paddle import static


class DeepFM(ClickModel):
    """The logit of a click = a weight for each id and number + <v_i, v_j> of every pair of them + layers(rows, numbers).
    A number's vector is that of its place, multiplied by it."""

    def __init__(self, sparse_feature_dim: int = 1000001, embedding_size: int = 10, hidden: Sequence[int] = (400, 400, 400),
                 is_distributed: bool = False, dense_feature_dim: int = 13, slot_num: int = 26):
        super().__init__(sparse_feature_dim, embedding_size, hidden, is_distributed, dense_feature_dim, slot_num)

    def _network(self, embedding_size, hidden):
        start = paddle.nn.initializer.Normal(std=0.1 * embedding_size ** -0.5)
        weights = self._rows("fm_weights", 1, paddle.nn.initializer.Constant(0.0))
        rows = self._rows("fm_factors", embedding_size, start)
        factors = static.create_parameter([self._dense.shape[1], embedding_size], "float32", name="fm_dense_factors",
                                          default_initializer=start)
        single = paddle.add_n(weights) + static.nn.fc(self._dense, 1)
        deep = self._deep(paddle.concat([*rows, self._dense], axis=1), hidden, 1)
        self._learn_from(single + self._pairs(rows, factors) + deep)

    def _pairs(self, rows, factors):
        """Sum of <v_i, v_j> over i < j = ((sum of v)^2 - sum of v^2) / 2, [N, 1]."""
        total = paddle.add_n([*rows, paddle.matmul(self._dense, factors)])
        squares = paddle.add_n([*(paddle.square(row) for row in rows),
                                paddle.matmul(paddle.square(self._dense), paddle.square(factors))])
        return 0.5 * paddle.sum(paddle.square(total) - squares, axis=1, keepdim=True)
