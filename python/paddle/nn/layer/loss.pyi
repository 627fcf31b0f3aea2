# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn import BCELoss as BCELoss
from paddle.nn import BCEWithLogitsLoss as BCEWithLogitsLoss
from paddle.nn import CosineEmbeddingLoss as CosineEmbeddingLoss
from paddle.nn import CrossEntropyLoss as CrossEntropyLoss
from paddle.nn import HingeEmbeddingLoss as HingeEmbeddingLoss
from paddle.nn import KLDivLoss as KLDivLoss
from paddle.nn import L1Loss as L1Loss
from paddle.nn import MSELoss as MSELoss
from paddle.nn import MarginRankingLoss as MarginRankingLoss
from paddle.nn import NLLLoss as NLLLoss
from paddle.nn import SmoothL1Loss as SmoothL1Loss
