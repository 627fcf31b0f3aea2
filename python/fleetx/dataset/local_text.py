"""Real English text without a network: licences and notices of the packages that are installed (Debian)."""
import glob
import os
import re

from fleetx.dataset.local_files import cache_folder, write_parts
from paddle._native import native

PATTERNS = ["/usr/share/common-licenses/*", "/usr/share/doc/*/copyright", "/usr/share/doc/*/NEWS*", "/usr/share/doc/*/README*"]
MOST_BYTES = 8 << 20  # of train.txt


def local_text(folder: str = "", most_bytes: int = MOST_BYTES) -> str:
    """A folder with train.txt and val.txt, a sentence a line and an empty line between documents; made once. Every 20th
    document is for validation. Says what it is."""
    folder = folder or cache_folder("text")
    train = os.path.join(folder, "train.txt")
    if not os.path.exists(train):
        parts, size, number = {"val.txt": [], "train.txt": []}, 0, 0
        for number, sentences in enumerate(_documents()):
            parts["val.txt" if number % 20 == 19 else "train.txt"] += [*sentences, ""]
            size += sum(map(len, sentences))
            if size > most_bytes:
                break
        if number < 100:
            raise native.InvalidArgumentError(f"found only {number} texts on this machine; give a folder with train.txt")
        write_parts(folder, parts)
    print(f"text: notices and licences of this machine's packages, {os.path.getsize(train)} bytes, in {folder}", flush=True)
    return folder


def _documents():
    seen = set()
    for path in sorted(file for pattern in PATTERNS for file in glob.glob(pattern)):
        if not os.path.isfile(path) or path.endswith((".gz", ".html")):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            sentences = [s for s in _sentences(file.read()) if s not in seen]
        seen.update(sentences)  # many packages have the same licence
        if len(sentences) >= 2:
            yield sentences


def _sentences(text):
    for paragraph in re.split(r"\n[ .#*]*\n", text):
        for sentence in re.split(r"(?<=[.!?;:]) +", " ".join(paragraph.split())):
            if len(sentence.split()) >= 3:
                yield sentence
