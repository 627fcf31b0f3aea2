"""Data: pictures from lists, samples from files, text, and made-up sets to try things out."""
from fleetx.dataset.generated import generated_clicks, generated_sentences
from fleetx.dataset.image_dataset import ImageLoader
from fleetx.dataset.labelled_text import LabelledTextLoader
from fleetx.dataset.local_languages import local_languages
from fleetx.dataset.local_messages import local_messages
from fleetx.dataset.local_names import local_names
from fleetx.dataset.local_packages import local_packages
from fleetx.dataset.local_text import local_text
from fleetx.dataset.prepared_bert import PreparedBertLoader
from fleetx.dataset.sample_loader import SampleLoader
from fleetx.dataset.text_dataset import BertLoader, TextLoader, TranslationLoader

__all__ = ["ImageLoader", "SampleLoader", "BertLoader", "PreparedBertLoader", "TranslationLoader", "TextLoader", "generated_flowers",
           "generated_clicks", "generated_sentences", "local_languages", "local_text", "local_names",
           "local_messages", "local_packages", "LabelledTextLoader"]


def generated_flowers(classes: int = 8, train: int = 1600, val: int = 400, size: int = 256, seed: int = 0) -> str:
    """Folder with train.txt, val.txt and drawn pictures of flowers (as by `fleetx make-flowers`), made once."""
    from paddle._native import native
    folder = native.cached_flowers(classes, train, val, size, seed)
    print(f"flowers: {train} + {val} generated pictures of {classes} kinds, {size} x {size}, in {folder}", flush=True)
    return folder
