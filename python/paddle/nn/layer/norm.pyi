# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn import LocalResponseNorm as LocalResponseNorm
from paddle.nn.layer.common import BatchNorm as BatchNorm
from paddle.nn.layer.common import BatchNorm1D as BatchNorm1D
from paddle.nn.layer.common import BatchNorm2D as BatchNorm2D
from paddle.nn.layer.common import BatchNorm3D as BatchNorm3D
from paddle.nn.layer.common import GroupNorm as GroupNorm
from paddle.nn.layer.common import InstanceNorm2D as InstanceNorm1D
from paddle.nn.layer.common import InstanceNorm2D as InstanceNorm2D
from paddle.nn.layer.common import LayerNorm as LayerNorm
from paddle.nn.layer.common import SyncBatchNorm as SyncBatchNorm
