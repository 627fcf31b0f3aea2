# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset import common as common
from paddle.dataset.common import fetch as fetch

def get_dict(lang: Any, dict_size: Any, reverse: Any = False) -> Any: ...
def test(src_dict_size: Any, trg_dict_size: Any, src_lang: Any = 'en') -> Any: ...
def train(src_dict_size: Any, trg_dict_size: Any, src_lang: Any = 'en') -> Any: ...
def validation(src_dict_size: Any, trg_dict_size: Any, src_lang: Any = 'en') -> Any: ...
