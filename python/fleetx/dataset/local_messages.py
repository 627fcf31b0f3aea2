"""Real pairs of sentences without a network: messages of this machine's programs and their translations (Debian)."""
import gettext
import glob
import os
import re
import zlib
from typing import Dict

from paddle._native import native

PATTERN = "/usr/share/locale/{language}/LC_MESSAGES/*.mo"
NAMES = "iso_"  # catalogues of names, which local_names() has


def local_messages(language: str = "de", folder: str = "") -> str:
    """A folder with train.tsv and val.tsv: an English message, a tab, and what it is in `language` (default: German).
    Every 20th message, by checksum, is for validation. Made once; says what it is."""
    cache = os.path.join(native.env("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fleetx", f"messages_{language}")
    folder = folder or cache
    train = os.path.join(folder, "train.tsv")
    if not os.path.exists(train):
        pairs = _pairs(language)
        if len(pairs) < 1000:
            raise native.InvalidArgumentError(
                f"found {len(pairs)} messages in '{language}' on this machine; install programs with translations, or give a "
                "folder with train.tsv and val.tsv")
        os.makedirs(folder, exist_ok=True)
        for part in ("val", "train"):  # train.tsv last: it tells that all is there
            partial = os.path.join(folder, f"{part}.{os.getpid()}")
            with open(partial, "w", encoding="utf-8") as out:
                for message, translated in sorted(pairs.items()):
                    if (zlib.crc32(message.encode()) % 20 == 19) == (part == "val"):
                        out.write(f"{message}\t{translated}\n")
            os.replace(partial, os.path.join(folder, f"{part}.tsv"))
    with open(train, encoding="utf-8") as lines:
        print(f"messages: {sum(1 for _ in lines)} of this machine's programs for training, English to {language}, in {folder}",
              flush=True)
    return folder


def messages_of(path: str) -> Dict[str, str]:
    """{message: translation} of a catalogue, as plain text on one line each."""
    with open(path, "rb") as file:
        try:
            catalog = gettext.GNUTranslations(file)._catalog
        except (OSError, UnicodeDecodeError, ValueError):  # in an encoding that Python does not know, or damaged
            return {}
    found = {}
    for message, translated in catalog.items():
        message = message[0] if isinstance(message, tuple) else message  # one of several numbers
        if isinstance(message, str) and isinstance(translated, str):
            message, translated = _plain(message.split("\x04")[-1]), _plain(translated)
            if message and translated:
                found[message] = translated
    return found


def _pairs(language) -> Dict[str, str]:
    pairs: Dict[str, str] = {}
    for path in sorted(glob.glob(PATTERN.format(language=language))):
        if not os.path.basename(path).startswith(NAMES):
            for message, translated in messages_of(path).items():
                if message != translated:
                    pairs.setdefault(message, translated)
    return pairs


def _plain(text: str) -> str:
    """Words with one space between them, without the marks of keyboard shortcuts."""
    return " ".join(re.sub(r"(?<!\w)[_&](?=\w)", "", text).split())
