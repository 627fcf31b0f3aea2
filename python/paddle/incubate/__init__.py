"""Of paddle.incubate: optimizers by averages."""
from paddle import _refuse
from paddle.incubate import optimizer  # noqa: F401
from paddle.incubate.optimizer import LookAhead, ModelAverage  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"distributed": "paddle.distributed.fleet", "segment_sum": "paddle.scatter",
                                        "softmax_mask_fuse": "paddle.nn.functional.softmax of a sum; the planner fuses it"},
                             lazy={"nn": "paddle.incubate.nn"})
