"""Training with parameter servers as in 1.x."""
from paddle._native import native
from paddle.distributed import fleet as _new
from paddle.distributed.fleet.base.role_maker import MPISymetricRoleMaker, PaddleCloudRoleMaker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (  # noqa: F401
    DistributedStrategy, StrategyFactory)
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig  # noqa: F401


class _Servers:
    """The functions of paddle.distributed.fleet; init is for servers and workers, and sync is what nobody has to ask
    for."""

    def init(self, role_maker=None):
        """Without a role maker: that of mpirun, or of fleetrun and PaddleCloud; else this process trains alone."""
        if role_maker is None:
            role_maker = MPISymetricRoleMaker() if native.job_env()["by_mpi"] else PaddleCloudRoleMaker()
        _new.init(role_maker, is_collective=False)

    def distributed_optimizer(self, optimizer, strategy=None):
        return _new.distributed_optimizer(optimizer, DistributeTranspilerConfig() if strategy is None else strategy)

    def init_server(self, model_dir=None, **kwargs):
        _new.init_server(model_dir, **kwargs)

    def __getattr__(self, name):
        return getattr(_new, name)


fleet = _Servers()
