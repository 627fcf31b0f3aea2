"""Mixed precision with bfloat16, by the names of later versions. It has the range of float32, so the loss is not scaled."""
from paddle import _refuse
from paddle.static.amp import CustomOpLists, cast_model_to_fp16, cast_parameters_to_fp16, decorate
from paddle.static.amp import fp16_guard as bf16_guard  # noqa: F401

__all__ = ["AutoMixedPrecisionListsBF16", "decorate_bf16", "bf16_guard", "cast_model_to_bf16", "cast_parameters_to_bf16"]


class AutoMixedPrecisionListsBF16(CustomOpLists):
    """Ops that compute in bfloat16 or in float32, and variables whose ops compute in float32."""

    def __init__(self, custom_bf16_list=None, custom_fp32_list=None, custom_fp32_varnames=None):
        super().__init__(custom_bf16_list, custom_fp32_list, custom_fp32_varnames)


def decorate_bf16(optimizer, amp_lists=None, use_pure_bf16=False, use_bf16_guard=None):
    """The optimizer, in mixed precision. A step whose gradients are not finite is left out."""
    return decorate(optimizer, amp_lists, init_loss_scaling=1.0, use_dynamic_loss_scaling=False, use_pure_fp16=use_pure_bf16,
                    use_fp16_guard=use_bf16_guard)


def cast_model_to_bf16(program, amp_lists=None, use_bf16_guard=True):
    """As paddle.static.amp.cast_model_to_fp16."""
    return cast_model_to_fp16(program, amp_lists, use_bf16_guard)


def cast_parameters_to_bf16(place, program, scope=None, to_bf16_var_names=None):
    """Nothing to do: see paddle.static.amp.cast_model_to_fp16."""
    cast_parameters_to_fp16(place, program, scope, to_bf16_var_names)


__getattr__ = _refuse.getter(__name__, dict.fromkeys(["rewrite_program_bf16", "convert_float_to_uint16"],
                                                     "decorate_bf16, cast_model_to_bf16"))
