# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.transpiler.distribute_transpiler import HashName as HashName
from paddle.fluid.transpiler.distribute_transpiler import RoundRobin as RoundRobin
