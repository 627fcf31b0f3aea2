# Made by scripts/make_stubs from the code; change that and run it again.
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy

from paddle.distributed.fleet.base.role_maker import MPISymetricRoleMaker as MPISymetricRoleMaker
from paddle.distributed.fleet.base.role_maker import PaddleCloudRoleMaker as PaddleCloudRoleMaker
from paddle.distributed.fleet.base.role_maker import Role as Role
from paddle.distributed.fleet.base.role_maker import UserDefinedCollectiveRoleMaker as UserDefinedCollectiveRoleMaker
from paddle.distributed.fleet.base.role_maker import UserDefinedRoleMaker as UserDefinedRoleMaker
