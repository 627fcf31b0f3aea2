# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn.layer.common import Conv1D as Conv1D
from paddle.nn.layer.common import Conv2D as Conv2D
from paddle.nn.layer.common import Conv2DTranspose as Conv2DTranspose
from paddle.nn.layer.common import Conv3D as Conv3D
