from paddle.distributed.fleet.base.role_maker import (MPISymetricRoleMaker, PaddleCloudRoleMaker, Role,  # noqa: F401
                                                      UserDefinedCollectiveRoleMaker, UserDefinedRoleMaker)
from paddle import _refuse

__getattr__ = _refuse.getter(__name__, {"GeneralRoleMaker": "PaddleCloudRoleMaker"})
