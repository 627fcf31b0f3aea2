# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.nn import AdaptiveAvgPool1D as AdaptiveAvgPool1D
from paddle.nn import AdaptiveAvgPool2D as AdaptiveAvgPool2D
from paddle.nn import AdaptiveAvgPool3D as AdaptiveAvgPool3D
from paddle.nn import AdaptiveMaxPool1D as AdaptiveMaxPool1D
from paddle.nn import AdaptiveMaxPool2D as AdaptiveMaxPool2D
from paddle.nn import AdaptiveMaxPool3D as AdaptiveMaxPool3D
from paddle.nn import AvgPool1D as AvgPool1D
from paddle.nn import AvgPool2D as AvgPool2D
from paddle.nn import AvgPool3D as AvgPool3D
from paddle.nn import MaxPool1D as MaxPool1D
from paddle.nn import MaxPool2D as MaxPool2D
from paddle.nn import MaxPool3D as MaxPool3D
