"""Real pairs of names without a network: those of languages, countries and their parts, from Debian's iso-codes."""
import gettext
import glob
import os
from typing import Dict

from fleetx.dataset.local_files import cache_folder, count_lines, write_pairs
from paddle._native import native

PATTERN = "/usr/share/locale/{language}/LC_MESSAGES/iso_*.mo"


def local_names(language: str = "uk", folder: str = "") -> str:
    """A folder with train.tsv and val.tsv: an English name, a tab, and what it is in `language` (default: Ukrainian,
    which has 15,000 of them in its own letters). Every 20th name, by checksum, is for validation. Made once; says what
    it is."""
    folder = folder or cache_folder(f"names_{language}")
    train = os.path.join(folder, "train.tsv")
    if not os.path.exists(train):
        names = _names(language)
        if len(names) < 1000:
            raise native.InvalidArgumentError(
                f"found {len(names)} names in '{language}' on this machine; install Debian's iso-codes, or give a folder "
                "with train.tsv and val.tsv")
        write_pairs(folder, names)
    print(f"names: {count_lines(train)} of iso-codes for training, English to {language}, in {folder}", flush=True)
    return folder


def _names(language) -> Dict[str, str]:
    names: Dict[str, str] = {}
    for path in sorted(glob.glob(PATTERN.format(language=language))):
        with open(path, "rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog
        for name, translated in catalog.items():
            if isinstance(name, str) and _is_name(name) and _is_name(translated) and name != translated:
                names.setdefault(name.split("\x04")[-1], translated)
    return names


def _is_name(text) -> bool:
    return isinstance(text, str) and 0 < len(text) <= 40 and not set(text) & set("\n\t%{}")
