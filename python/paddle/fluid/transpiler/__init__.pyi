# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.transpiler import details as details
from paddle.fluid.transpiler import distribute_transpiler as distribute_transpiler
from paddle.fluid.transpiler import inference_transpiler as inference_transpiler
from paddle.fluid.transpiler import ps_dispatcher as ps_dispatcher
from paddle.fluid.transpiler import transpiler as transpiler
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig as DistributeTranspilerConfig
from paddle.fluid.transpiler.distribute_transpiler import HashName as HashName
from paddle.fluid.transpiler.distribute_transpiler import RoundRobin as RoundRobin
from paddle.fluid.transpiler.inference_transpiler import InferenceTranspiler as InferenceTranspiler
from paddle.fluid.transpiler.transpiler import DistributeTranspiler as DistributeTranspiler
