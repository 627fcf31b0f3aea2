# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.fluid.layers.decoding import BeamSearchDecoder as BeamSearchDecoder
from paddle.fluid.layers.decoding import dynamic_decode as dynamic_decode
