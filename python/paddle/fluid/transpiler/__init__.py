from paddle import _refuse
from paddle.fluid.transpiler.distribute_transpiler import DistributeTranspilerConfig, HashName, RoundRobin  # noqa: F401
from paddle.fluid.transpiler.inference_transpiler import InferenceTranspiler  # noqa: F401
from paddle.fluid.transpiler import ps_dispatcher  # noqa: F401
from paddle.fluid.transpiler.transpiler import DistributeTranspiler  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"memory_optimize": "nothing: memory is always planned"})
