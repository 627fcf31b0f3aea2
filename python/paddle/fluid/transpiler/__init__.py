from paddle import _refuse
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig  # noqa: F401

_SERVERS = "paddle.distributed.fleet with is_collective=True; parameter-server training is not built yet"
__getattr__ = _refuse.getter(__name__, {"DistributeTranspiler": _SERVERS, "RoundRobin": _SERVERS, "HashName": _SERVERS,
                                        "memory_optimize": "nothing: memory is always planned"})
