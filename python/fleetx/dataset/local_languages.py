"""Real texts with labels without a network: messages of this machine's programs, and the language that they are in (Debian)."""
import collections
import glob
import os
import zlib
from typing import Dict, List, Sequence

from fleetx.dataset.local_files import cache_folder, count_lines, write_parts
from fleetx.dataset.local_messages import NAMES, PATTERN, messages_of
from paddle._native import native

# All in Latin letters, and nearly all with a near relation among the others.
LANGUAGES = ("ca", "cs", "da", "de", "es", "fi", "fr", "hu", "it", "nl", "pl", "pt", "ro", "sk", "sv", "tr")
LABELLED, VAL = 500, 100  # texts of each language with a label, and those that nothing learns from
MOST = 3000  # of a language without label
DOCUMENT = 20  # messages


def local_languages(folder: str = "", languages: Sequence[str] = LANGUAGES) -> str:
    """A folder with train.tsv and val.tsv, lines of a language, a tab and a message of three words or more; val.tsv has 100 of each
    language. And with train.txt and val.txt, for pre-training: messages without the name of their language; a document is 20 messages
    of one program in one language. Programs are either for training or for validation. Made once; says what it is."""
    folder = folder or cache_folder("languages")
    last = os.path.join(folder, "train.tsv")
    if not os.path.exists(last):
        _write(folder, {language: _programs(language) for language in languages})
    print(f"languages: {count_lines(last)} messages of this machine's programs in {len(languages)} languages for training, and "
          f"{os.path.getsize(os.path.join(folder, 'train.txt'))} bytes without labels, in {folder}", flush=True)
    return folder


def _programs(language) -> Dict[str, List[str]]:
    """{program: its messages in this language}"""
    found, seen = {}, set()
    for path in sorted(glob.glob(PATTERN.format(language=language))):
        program = os.path.basename(path)
        if not program.startswith(NAMES):
            messages = {text for english, text in messages_of(path).items() if text != english and _is_sentence(text)}
            found[program] = sorted(messages - seen, key=_mixed)
            seen |= messages
    return found


def _is_sentence(text) -> bool:
    words = text.split()
    return 3 <= len(words) <= 40 and sum(word.isalpha() for word in words) >= 0.6 * len(words)


def _mixed(text) -> int:
    """Sorts into an order that has nothing to do with what a text is."""
    return zlib.crc32(text.encode())


def _write(folder, programs):
    parts = collections.defaultdict(list)
    for language, messages in programs.items():
        of = {"train": [], "val": []}
        for program in sorted(messages, key=_mixed):
            part, texts = "val" if _mixed(program) % 5 == 4 else "train", messages[program]
            room = (MOST if part == "train" else MOST // 10) - len(of[part])
            of[part] += texts[:room]
            for begin in range(0, len(texts[:room]), DOCUMENT):
                parts[f"{part}.txt"] += [*texts[:room][begin:begin + DOCUMENT], ""]
        for part, wanted in (("val", VAL), ("train", LABELLED)):
            if len(of[part]) < wanted:
                raise native.InvalidArgumentError(
                    f"found {len(of[part])} of {wanted} messages for {part} in '{language}' on this machine; install programs with "
                    "translations, or take languages that it has")
            parts[f"{part}.tsv"] += [f"{language}\t{text}" for text in sorted(of[part], key=_mixed)[:wanted]]
    write_parts(folder, {name: parts[name] for name in ("train.txt", "val.txt", "val.tsv", "train.tsv")})
