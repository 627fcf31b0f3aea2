"""Data: pictures from lists, and a set of made-up ones to try things out."""
from fleetx.dataset.image_dataset import ImageLoader

__all__ = ["ImageLoader", "generated_flowers"]


def generated_flowers(classes=8, train=1600, val=400, size=256, seed=0):
    """Folder with train.txt, val.txt and drawn pictures of flowers (docs: fleetx make-flowers); made once and cached."""
    from paddle._native import native
    folder = native.cached_flowers(classes, train, val, size, seed)
    print(f"flowers: {train} + {val} generated pictures of {classes} kinds, {size} x {size}, in {folder}", flush=True)
    return folder
