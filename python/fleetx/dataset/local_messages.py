"""Real pairs of sentences without a network: messages of this machine's programs and their translations (Debian)."""
import gettext
import glob
import os
import re
from typing import Dict

from fleetx.dataset.local_files import cache_folder, count_lines, write_pairs
from paddle._native import native

PATTERN = "/usr/share/locale/{language}/LC_MESSAGES/*.mo"
NAMES = "iso_"  # catalogues of names, which local_names() has


def local_messages(language: str = "de", folder: str = "") -> str:
    """A folder with train.tsv and val.tsv: an English message, a tab, and what it is in `language` (default: German).
    Every 20th message, by checksum, is for validation. Made once; says what it is."""
    folder = folder or cache_folder(f"messages_{language}")
    train = os.path.join(folder, "train.tsv")
    if not os.path.exists(train):
        pairs = _pairs(language)
        if len(pairs) < 1000:
            raise native.InvalidArgumentError(
                f"found {len(pairs)} messages in '{language}' on this machine; install programs with translations, or give a "
                "folder with train.tsv and val.tsv")
        write_pairs(folder, pairs)
    print(f"messages: {count_lines(train)} of this machine's programs for training, English to {language}, in {folder}",
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
