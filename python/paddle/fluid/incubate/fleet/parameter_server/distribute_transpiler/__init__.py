"""Training with parameter servers as in 1.x. Roles are known; the training itself is not built yet and says so."""
from paddle.distributed import fleet as _new
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig  # noqa: F401


class _Servers:
    def init(self, role_maker=None):
        if role_maker is None:
            from paddle.distributed.fleet.base.role_maker import MPISymetricRoleMaker
            role_maker = MPISymetricRoleMaker()
        _new.init(role_maker, is_collective=False)

    def __getattr__(self, name):
        return getattr(_new, name)


fleet = _Servers()
