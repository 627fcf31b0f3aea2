# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.utils.unique_name import UniqueNameGenerator as UniqueNameGenerator
from paddle.utils.unique_name import generate as generate
from paddle.utils.unique_name import guard as guard
from paddle.utils.unique_name import switch as switch
