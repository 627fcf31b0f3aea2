"""Losses as layers, by their module in 2.0."""
from paddle import _refuse
from paddle.nn import (  # noqa: F401
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, HingeEmbeddingLoss, KLDivLoss, L1Loss,
    MarginRankingLoss, MSELoss, NLLLoss, SmoothL1Loss)

__getattr__ = _refuse.getter(__name__, {})
