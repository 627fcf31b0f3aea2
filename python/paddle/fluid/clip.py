"""Limits on gradients with the names of 1.x."""
from paddle import _graph
from paddle._refuse import refused as _refused
from paddle.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue

GradientClipByValue = ClipGradByValue
GradientClipByNorm = ClipGradByNorm
GradientClipByGlobalNorm = ClipGradByGlobalNorm
ErrorClipByValue = _refused("paddle.fluid.clip.ErrorClipByValue", "GradientClipByValue",
                            "gradients of variables that are no parameters are not clipped")


def set_gradient_clip(clip, param_list=None, program=None):
    """How optimizers without a grad_clip of their own clip the gradients of `param_list` (variables or names; default:
    all) in a program, from now on."""
    if not hasattr(clip, "options"):
        raise TypeError(f"set_gradient_clip: clip must be a GradientClipBy..., not {type(clip).__name__}")
    program = program if program is not None else _graph.default_main_program()
    names = None if param_list is None else {p if isinstance(p, str) else p.name for p in param_list}
    program.gradient_clip = (clip, names)
