"""Limits on gradients with the names of 1.x."""
from paddle.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue

GradientClipByValue = ClipGradByValue
GradientClipByNorm = ClipGradByNorm
GradientClipByGlobalNorm = ClipGradByGlobalNorm


def set_gradient_clip(clip, param_list=None, program=None):
    from paddle._refuse import refuse
    raise refuse("paddle.fluid.clip.set_gradient_clip", "the argument grad_clip of an optimizer")
