# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.incubate import nn as nn
from paddle.incubate import optimizer as optimizer
from paddle.optimizer._averages import Lookahead as LookAhead
from paddle.optimizer._averages import ModelAverage as ModelAverage
