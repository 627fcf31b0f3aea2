from paddle import _refuse
from paddle.fluid.dygraph import enabled, guard, in_dygraph_mode, no_grad  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"to_variable": "static programs: Executor.run"})
