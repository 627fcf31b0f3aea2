"""Data: pictures from lists, a set of made-up ones to try things out, and text."""
from fleetx.dataset.image_dataset import ImageLoader
from fleetx.dataset.local_text import local_text
from fleetx.dataset.text_dataset import BertLoader, TextLoader, TranslationLoader

__all__ = ["ImageLoader", "BertLoader", "TranslationLoader", "TextLoader", "generated_flowers", "local_text"]


def generated_flowers(classes: int = 8, train: int = 1600, val: int = 400, size: int = 256, seed: int = 0) -> str:
    """Folder with train.txt, val.txt and drawn pictures of flowers (as by `fleetx make-flowers`), made once."""
    from paddle._native import native
    folder = native.cached_flowers(classes, train, val, size, seed)
    print(f"flowers: {train} + {val} generated pictures of {classes} kinds, {size} x {size}, in {folder}", flush=True)
    return folder
