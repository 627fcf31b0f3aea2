"""Real pairs of names without a network: those of languages, countries and their parts, from Debian's iso-codes."""
import gettext
import glob
import os
import zlib
from typing import Dict

from paddle._native import native

PATTERN = "/usr/share/locale/{language}/LC_MESSAGES/iso_*.mo"


def local_names(language: str = "uk", folder: str = "") -> str:
    """A folder with train.tsv and val.tsv: an English name, a tab, and what it is in `language` (default: Ukrainian,
    which has 15,000 of them in its own letters). Every 20th name, by checksum, is for validation. Made once; says what
    it is."""
    cache = os.path.join(native.env("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fleetx", f"names_{language}")
    folder = folder or cache
    train = os.path.join(folder, "train.tsv")
    if not os.path.exists(train):
        names = _names(language)
        if len(names) < 1000:
            raise native.InvalidArgumentError(
                f"found {len(names)} names in '{language}' on this machine; install Debian's iso-codes, or give a folder "
                "with train.tsv and val.tsv")
        os.makedirs(folder, exist_ok=True)
        for part in ("val", "train"):  # train.tsv last: it tells that all is there
            partial = os.path.join(folder, f"{part}.{os.getpid()}")
            with open(partial, "w", encoding="utf-8") as out:
                for name, translated in sorted(names.items()):
                    if (zlib.crc32(name.encode()) % 20 == 19) == (part == "val"):
                        out.write(f"{name}\t{translated}\n")
            os.replace(partial, os.path.join(folder, f"{part}.tsv"))
    with open(train, encoding="utf-8") as lines:
        print(f"names: {sum(1 for _ in lines)} of iso-codes for training, English to {language}, in {folder}", flush=True)
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
