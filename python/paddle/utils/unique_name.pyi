# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy






class UniqueNameGenerator:
    def __init__(self, prefix: Any = None) -> None: ...
    def __call__(self, key: Any) -> Any: ...


def generate(key: Any) -> Any: ...
def guard(new_generator: Any = None) -> Any: ...
def switch(new_generator: Any = None) -> Any: ...
