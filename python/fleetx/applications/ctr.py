"""CTR-DNN: one table for all slots, fully connected layers, two classes."""
from typing import Sequence

import paddle
from fleetx.applications.click import ClickModel


class MultiSlotCTR(ClickModel):
    """13 numbers and 26 ids per sample; rows of 10, three layers of 400, softmax over no click and click."""

    def __init__(self, sparse_feature_dim: int = 1000001, embedding_size: int = 10, hidden: Sequence[int] = (400, 400, 400),
                 is_distributed: bool = False, dense_feature_dim: int = 13, slot_num: int = 26):
        super().__init__(sparse_feature_dim, embedding_size, hidden, is_distributed, dense_feature_dim, slot_num)

    def _network(self, embedding_size, hidden):
        rows = self._rows("SparseFeatFactors", embedding_size, paddle.nn.initializer.Uniform(-0.01, 0.01))
        logits = self._deep(paddle.concat([*rows, self._dense], axis=1), hidden, 2)
        self.predict = paddle.nn.functional.softmax(logits)
        self.loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, self._label))
