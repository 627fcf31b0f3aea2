from paddle.static.amp import cast_model_to_fp16, cast_parameters_to_fp16, fp16_guard  # noqa: F401
