# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle import tensor as T
from paddle._graph import Variable as Variable
from paddle.fluid.layers.static_rnn import StaticRNN as StaticRNN
from paddle.nn import functional as F

class BeamSearchDecoder:
    cell: Any
    start_token: Any
    end_token: Any
    beam_size: Any
    embedding_fn: Any
    output_fn: Any
    def __init__(self, cell: Any, start_token: Any, end_token: Any, beam_size: Any, embedding_fn: Any = None, output_fn: Any = None) -> None: ...
    @staticmethod
    def tile_beam_merge_with_batch(x: Variable, beam_size: Any) -> Any: ...


class _Choice:
    words: Any
    rows: Any
    ended: Any
    scores: Any
    def __init__(self, shares: Any, scores: Variable, ended: Any, first: Any, end: Any) -> None: ...
    def of_beams(self, x: Variable, row: Any) -> Any: ...
def dynamic_decode(decoder: Any, inits: Any = None, max_step_num: Any = None, output_time_major: Any = False, impute_finished: Any = False, is_test: bool = False, return_length: Any = False, **kwargs: Any) -> Variable: ...
