"""Limits on gradients, given to an optimizer as grad_clip."""
__all__ = ["ClipGradByValue", "ClipGradByNorm", "ClipGradByGlobalNorm"]


class ClipGradByValue:
    """Every element to [min, max]; min is -max where it is not given."""

    def __init__(self, max, min=None):
        self.max, self.min = float(max), -float(max) if min is None else float(min)

    def options(self):
        return ("value", self.min, self.max)


class ClipGradByNorm:
    """Every gradient by itself to at most this length."""

    def __init__(self, clip_norm):
        self.clip_norm = float(clip_norm)

    def options(self):
        return ("norm", self.clip_norm)


class ClipGradByGlobalNorm:
    """All gradients as one vector to at most this length."""

    def __init__(self, clip_norm, group_name="default_group", auto_skip_clip=False):
        self.clip_norm = float(clip_norm)

    def options(self):
        return ("global_norm", self.clip_norm)
