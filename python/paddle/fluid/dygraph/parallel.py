from paddle import _refuse
from paddle.distributed import ParallelEnv

Env = ParallelEnv
__getattr__ = _refuse.getter(__name__, {"DataParallel": "fleet.distributed_optimizer in a static program",
                                        "prepare_context": "fleet.init(is_collective=True)",
                                        "ParallelStrategy": "fleet.DistributedStrategy"})
