# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy



from paddle.dataset import common as common



def build_dict(pattern: Any, cutoff: Any) -> Any: ...
def test(word_idx: Any) -> Any: ...
def tokenize(pattern: Any) -> Any: ...
def train(word_idx: Any) -> Any: ...
def word_dict(cutoff: Any = 150) -> Any: ...
