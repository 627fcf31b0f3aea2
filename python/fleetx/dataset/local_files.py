"""Where sets that are made from this machine's files are kept, and how they are written."""
import os
import zlib
from typing import Dict, Iterable

from paddle._native import native

Parts = Dict[str, Iterable[str]]


def cache_folder(name: str) -> str:
    return os.path.join(native.env("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "fleetx", name)


def write_parts(folder: str, parts: Parts) -> None:
    """{file: lines}. Each file appears when it is whole, in this order: the last one tells that all are there. Several processes
    may write the same at the same time."""
    os.makedirs(folder, exist_ok=True)
    for name, lines in parts.items():
        partial = os.path.join(folder, f"{name}.{os.getpid()}")
        with open(partial, "w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
        os.replace(partial, os.path.join(folder, name))


def write_pairs(folder: str, pairs: Dict[str, str]) -> None:
    """val.tsv and train.tsv. Every 20th pair, by checksum, is for validation."""
    lines = {"val.tsv": [], "train.tsv": []}
    for source, target in sorted(pairs.items()):
        held_out = zlib.crc32(source.encode()) % 20 == 19
        lines["val.tsv" if held_out else "train.tsv"].append(f"{source}\t{target}")
    write_parts(folder, lines)


def count_lines(file: str) -> int:
    with open(file, encoding="utf-8") as lines:
        return sum(1 for _ in lines)
