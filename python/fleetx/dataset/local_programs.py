"""Real texts with labels without a network: messages of this machine's programs (Debian), and which program each is of."""
import collections
import glob
import os
import zlib
from typing import Dict, Set

from fleetx.dataset.local_messages import NAMES, PATTERN, messages_of
from paddle._native import native

LANGUAGES = ("de", "es", "fr", "pl", "sv", "uk")  # whose catalogues are read: each has messages that others lack
LEAST_WORDS = 3


def local_programs(folder: str = "", programs: int = 16, train: int = 100, val: int = 100) -> str:
    """A folder with train.tsv and val.tsv, lines of a program's name, a tab and one of its English messages: `train` and `val`
    of each of the `programs` that have most. And with train.txt and val.txt, for pre-training: the
    other messages of all programs, a document each. Made once; says what it is."""
    cache = os.path.join(native.env("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fleetx", "programs")
    folder = folder or cache
    last = os.path.join(folder, "train.tsv")
    if not os.path.exists(last):
        messages = _messages()
        largest = sorted(messages, key=lambda name: (-len(messages[name]), name))[:programs]
        if len(largest) < programs or len(messages[largest[-1]]) < 3 * (train + val):
            raise native.InvalidArgumentError(
                f"found {len(largest)} programs with messages on this machine, too few or too small; install programs with "
                "translations, or give a folder with train.tsv, val.tsv, train.txt and val.txt")
        os.makedirs(folder, exist_ok=True)
        _write(folder, messages, largest, train, val)
    with open(last, encoding="utf-8") as lines:
        print(f"programs: {sum(1 for _ in lines)} messages of {programs} programs for training, and "
              f"{os.path.getsize(os.path.join(folder, 'train.txt'))} bytes of other messages, in {folder}", flush=True)
    return folder


def _messages() -> Dict[str, Set[str]]:
    """Those that only one program has."""
    found = collections.defaultdict(set)
    for language in LANGUAGES:
        for path in glob.glob(PATTERN.format(language=language)):
            name = os.path.basename(path)[:-len(".mo")]
            if not name.startswith(NAMES):
                found[name] |= {m for m in messages_of(path) if len(m.split()) >= LEAST_WORDS}
    owners = collections.Counter(message for messages in found.values() for message in messages)
    return {name: {m for m in messages if owners[m] == 1} for name, messages in found.items()}


def _write(folder, messages, largest, train, val):
    parts = {"val.tsv": [], "val.txt": [], "train.txt": [], "train.tsv": []}  # train.tsv last: it tells that all is there
    for number, name in enumerate(sorted(messages)):
        # In an order that has nothing to do with what they say.
        mixed = sorted(messages[name], key=lambda m: zlib.crc32(m.encode()))
        if name in largest:
            parts["val.tsv"] += [f"{name}\t{m}" for m in mixed[:val]]
            parts["train.tsv"] += [f"{name}\t{m}" for m in mixed[val:val + train]]
            mixed = mixed[val + train:]
        if len(mixed) >= 2:
            parts["val.txt" if number % 20 == 19 else "train.txt"] += [*sorted(mixed), ""]
    for part, lines in parts.items():
        partial = os.path.join(folder, f"{part}.{os.getpid()}")
        with open(partial, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        os.replace(partial, os.path.join(folder, part))
