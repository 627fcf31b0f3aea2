# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.dataset.common import md5file as md5file

WEIGHTS_HOME: Any
def get_path_from_url(url: Any, root_dir: Any, md5sum: Any = None, check_exist: Any = True) -> Any: ...
def get_weights_path_from_url(url: Any, md5sum: Any = None) -> Any: ...
