"""paddle.static.amp, by its name in 1.x."""
from paddle.fluid.contrib.mixed_precision import decorator, fp16_lists, fp16_utils  # noqa: F401
from paddle.static.amp import (AutoMixedPrecisionLists, CustomOpLists, OptimizerWithMixedPrecision,  # noqa: F401
                               bf16, cast_model_to_fp16, cast_parameters_to_fp16, decorate, fp16_guard)
