"""Wide & Deep: a linear model of the numbers beside layers over the rows of all slots."""
from typing import Sequence

import paddle
from fleetx.applications.click import ClickModel
from paddle import static


class WideDeep(ClickModel):
    """The logit of a click = linear(13 numbers) + layers(26 rows and the numbers)."""

    def __init__(self, sparse_feature_dim: int = 1000001, embedding_size: int = 10, hidden: Sequence[int] = (400, 400, 400),
                 is_distributed: bool = False, dense_feature_dim: int = 13, slot_num: int = 26):
        super().__init__(sparse_feature_dim, embedding_size, hidden, is_distributed, dense_feature_dim, slot_num)

    def _network(self, embedding_size, hidden):
        wide = static.nn.fc(self._dense, 1)
        rows = self._rows("SparseFeatFactors", embedding_size, paddle.nn.initializer.Uniform(-0.01, 0.01))
        self._learn_from(wide + self._deep(paddle.concat([*rows, self._dense], axis=1), hidden, 1))
