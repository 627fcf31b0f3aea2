"""paddle.static.amp, by its name in 1.x."""
from paddle.static.amp import (AutoMixedPrecisionLists, CustomOpLists, OptimizerWithMixedPrecision,  # noqa: F401
                               cast_model_to_fp16, cast_parameters_to_fp16, decorate, fp16_guard)
