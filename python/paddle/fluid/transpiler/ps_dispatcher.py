"""Which server has which block of a parameter, for DistributeTranspilerConfig.split_method, by its path in 1.x."""
from paddle import _refuse
from paddle.fluid.transpiler.distribute_transpiler import HashName, RoundRobin  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"PSDispatcher": "split_method = RoundRobin or HashName; others are not here"})
