# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.layers.sequence import lod_reset as lod_reset
from paddle.fluid.layers.sequence import sequence_concat as sequence_concat
from paddle.fluid.layers.sequence import sequence_conv as sequence_conv
from paddle.fluid.layers.sequence import sequence_enumerate as sequence_enumerate
from paddle.fluid.layers.sequence import sequence_expand as sequence_expand
from paddle.fluid.layers.sequence import sequence_expand_as as sequence_expand_as
from paddle.fluid.layers.sequence import sequence_first_step as sequence_first_step
from paddle.fluid.layers.sequence import sequence_last_step as sequence_last_step
from paddle.fluid.layers.sequence import sequence_mask as sequence_mask
from paddle.fluid.layers.sequence import sequence_pad as sequence_pad
from paddle.fluid.layers.sequence import sequence_pool as sequence_pool
from paddle.fluid.layers.sequence import sequence_reshape as sequence_reshape
from paddle.fluid.layers.sequence import sequence_reverse as sequence_reverse
from paddle.fluid.layers.sequence import sequence_scatter as sequence_scatter
from paddle.fluid.layers.sequence import sequence_slice as sequence_slice
from paddle.fluid.layers.sequence import sequence_softmax as sequence_softmax
from paddle.fluid.layers.sequence import sequence_unpad as sequence_unpad
