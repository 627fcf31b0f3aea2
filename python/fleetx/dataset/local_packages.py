"""Real texts with labels from Debian's package lists: what a package is, and the section that it is in."""
import collections
import os
import re
import subprocess
import zlib
from typing import Dict, List, Sequence

from fleetx.dataset.local_files import cache_folder, count_lines, write_parts
from paddle._native import native

SECTIONS = ("admin", "editors", "games", "graphics", "mail", "math", "net", "science", "sound", "text", "web")
VAL = 100  # texts of each section that nothing learns from
HELPER = "/usr/lib/apt/apt-helper"


def local_packages(folder: str = "", sections: Sequence[str] = SECTIONS) -> str:
    """A folder with train.tsv and val.tsv, lines of a section, a tab and what a package of it is; val.tsv has 100 of each section.
    And with train.txt and val.txt, for pre-training: what all other packages are, a document each. Packages of one source
    (a program, its data, its manual) say nearly the same: only one of them is in the set.
    Made once, from apt's lists; where these lack the English texts (in containers), apt-get fetches them, 20 MB, into the
    cache folder. Says what it is."""
    folder = folder or cache_folder("packages")
    last = os.path.join(folder, "train.tsv")
    if not os.path.exists(last):
        texts = _texts(*_lists())
        few = [s for s in sections if sum(section == s for section, _ in texts.values()) < 2 * VAL]
        if few:
            raise native.InvalidArgumentError(f"apt's lists have less than {2 * VAL} packages in section '{few[0]}'; "
                                              f"take others, such as {', '.join(SECTIONS)}")
        _write(folder, texts, sections)
    print(f"packages: {count_lines(last)} of {len(sections)} sections of Debian for training, and "
          f"{os.path.getsize(os.path.join(folder, 'train.txt'))} bytes about other packages, in {folder}", flush=True)
    return folder


def _lists():
    """(files of packages, files of descriptions), of apt or fetched."""
    found = _targets([])
    if found[0] and found[1]:
        return found
    own = cache_folder("apt")
    options = ["Acquire::Languages=en", "APT::Sandbox::User="]  # no other user: it could not write here
    for key, part in (("Dir::State::Lists", "lists"), ("Dir::Cache", "cache")):
        os.makedirs(os.path.join(own, part), exist_ok=True)
        options.append(f"{key}={os.path.join(own, part)}")
    options = [word for option in options for word in ("-o", option)]
    found = _targets(options)
    if not (found[0] and found[1]):
        print(f"packages: apt has no English descriptions; apt-get fetches its lists into {own}", flush=True)
        _run(["apt-get", "-q", *options, "update"])
        found = _targets(options)
    if not (found[0] and found[1]):
        raise native.InvalidArgumentError("apt-get update brought no lists of packages; see /etc/apt/sources.list, or give a folder "
                                          "with train.tsv, val.tsv, train.txt and val.txt")
    return found


def _targets(options) -> List[List[str]]:
    kinds = "Packages", "Translations"
    lines = [_run(["apt-get", *options, "indextargets", "--format", "$(FILENAME)", f"Created-By: {kind}"]) for kind in kinds]
    return [[file for file in text.split("\n") if os.path.isfile(file)] for text in lines]


def _run(command) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise native.UnsupportedError(f"no {command[0]} here: this set is made of the lists of Debian's packages; give a folder with "
                                      "train.tsv, val.tsv, train.txt and val.txt") from None
    if done.returncode:
        raise native.InvalidArgumentError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def _records(files):
    for file in files:
        for record in _run([HELPER, "cat-file", file]).split("\n\n"):
            # A line that begins with a space goes on with the field before it.
            yield dict(re.findall(r"^(\S+?): ?(.*(?:\n .*)*)", record, re.MULTILINE))


def _texts(packages, descriptions) -> Dict[str, tuple]:
    """{source: (section, text)}; of the packages of a source the one with the shortest name."""
    chosen: Dict[str, tuple] = {}
    for record in _records(packages):
        if "Package" not in record:
            continue
        name = record["Package"]
        source = record.get("Source", name).split()[0]
        chosen[source] = min(chosen.get(source, (999,)), (len(name), name, record.get("Section", "").split("/")[-1]))
    owner = {name: (source, section) for source, (_, name, section) in chosen.items()}
    found = {}
    for record in _records(descriptions):
        if record.get("Package") in owner and "Description-en" in record:
            source, section = owner[record["Package"]]
            found[source] = section, _plain(record["Description-en"])
    return found


def _plain(description) -> List[str]:
    """Sentences: the title, and those of the paragraphs."""
    title, *lines = description.split("\n")
    paragraphs = re.split(r"\n \.\n", "\n".join(lines))
    sentences = [s for p in paragraphs for s in re.split(r"(?<=[.!?;:]) +", " ".join(p.split()))]
    return [title.strip(), *(s for s in sentences if len(s.split()) >= 3)]


def _write(folder, texts, sections):
    labelled = collections.defaultdict(list)
    documents = {"val.txt": [], "train.txt": []}
    for source in sorted(texts, key=lambda name: zlib.crc32(name.encode())):  # an order that has nothing to do with what they are
        section, sentences = texts[source]
        if section in sections:
            labelled[section].append(" ".join(sentences))
            if len(labelled[section]) <= VAL:
                continue
        if len(sentences) >= 2:
            part = "val.txt" if zlib.crc32(source.encode()) % 50 == 49 else "train.txt"
            documents[part] += [*sentences, ""]
    write_parts(folder, {**documents,
                         "val.tsv": [f"{name}\t{text}" for name in sorted(sections) for text in labelled[name][:VAL]],
                         "train.tsv": [f"{name}\t{text}" for name in sorted(sections) for text in labelled[name][VAL:]]})
