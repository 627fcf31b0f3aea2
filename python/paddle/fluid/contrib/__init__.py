"""Of 1.x's contributions: mixed precision, and the layers for parameter servers."""
from paddle import _refuse
from paddle.fluid.contrib import layers, mixed_precision  # noqa: F401

__getattr__ = _refuse.getter(__name__, {"slim": "nothing", "quantize": "nothing",
                                        "sparsity": "nothing", "extend_optimizer": "paddle.optimizer.AdamW",
                                        "model_stat": "the command fleetx plan"})
