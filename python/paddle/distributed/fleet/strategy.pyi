# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

class DistributedStrategy:
    def __init__(self) -> None: ...
    def save_to_prototxt(self, output: Any) -> Any: ...
    def load_from_prototxt(self, pb_file: Any) -> Any: ...
