# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import no_grad as no_grad
from paddle.fluid.dygraph import enabled as enabled
from paddle.fluid.dygraph import enabled as in_dygraph_mode

guard: Any
