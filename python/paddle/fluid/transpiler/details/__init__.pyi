# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.transpiler.details import program_utils as program_utils
from paddle.fluid.transpiler.details.program_utils import op_to_code as op_to_code
from paddle.fluid.transpiler.details.program_utils import program_to_code as program_to_code
from paddle.fluid.transpiler.details.program_utils import variable_to_code as variable_to_code
