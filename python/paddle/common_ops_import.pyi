# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid import core as core
from paddle.fluid.data_feeder import check_dtype as check_dtype
from paddle.fluid.data_feeder import check_type as check_type
from paddle.fluid.data_feeder import check_variable_and_dtype as check_variable_and_dtype
from paddle.fluid.layer_helper import LayerHelper as LayerHelper
