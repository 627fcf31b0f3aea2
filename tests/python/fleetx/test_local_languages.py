"""Messages of programs and their languages: texts with labels, and text without."""
import importlib
import struct

import pytest

import fleetx as X
from paddle._native import native

module = importlib.import_module("fleetx.dataset.local_languages")  # the package has a function of this name


def write_catalogue(path, messages):
    """A file of gettext."""
    messages = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **messages}.items())
    at, tables, texts = 28 + 16 * len(messages), [], b""
    for column in (0, 1):
        for pair in messages:
            text = pair[column].encode()
            tables += [len(text), at + len(texts)]
            texts += text + b"\0"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<7I", 0x950412DE, 0, len(messages), 28, 28 + 8 * len(messages), 0, 0)
                     + struct.pack(f"<{len(tables)}I", *tables) + texts)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    for language in ("aa", "bb"):
        for program in range(30):
            write_catalogue(tmp_path / language / f"program{program}.mo", {
                "same in both": "same in both", f"short {program}": "two words",
                **{f"message {program} {i}": f"{language} says {program} times{i} something" for i in range(30)}})
        write_catalogue(tmp_path / language / "iso_1.mo", {"a name": f"{language} has a name"})
    monkeypatch.setattr(module, "PATTERN", str(tmp_path / "{language}/*.mo"))
    return tmp_path


def test_texts_with_labels_and_without(programs, capsys):
    folder = X.dataset.local_languages(str(programs / "set"), ("aa", "bb"))
    assert "languages: 1000 messages of this machine's programs in 2 languages" in capsys.readouterr().out
    parts = {name: (programs / "set" / name).read_text() for name in ("train.tsv", "val.tsv", "train.txt", "val.txt")}
    train, val = ([line.split("\t") for line in parts[f"{p}.tsv"].splitlines()] for p in ("train", "val"))
    assert len(train) == 1000 and len(val) == 200
    for label, text in train + val:
        assert text.startswith(f"{label} says ")
    # A program is either for training or for validation, with labels and without.
    program_of = [{line.split()[2] for line in parts[f"{p}.txt"].splitlines() if line} for p in ("train", "val")]
    assert len(program_of[0]) > 10 and len(program_of[1]) > 2 and not program_of[0] & program_of[1]
    assert {text.split()[2] for _, text in val} <= program_of[1] and {text.split()[2] for _, text in train} <= program_of[0]
    for document in parts["train.txt"].strip().split("\n\n"):
        lines = document.split("\n")
        assert len(lines) <= 20 and len({tuple(line.split()[:3:2]) for line in lines}) == 1  # one program, one language
    assert X.applications.BertClassifier.labels_of(folder) == ["aa", "bb"]


def test_what_is_missing_is_named(programs):
    with pytest.raises(native.InvalidArgumentError, match="found 0 of 100 messages for val in 'xx' on this machine"):
        X.dataset.local_languages(str(programs / "set"), ("aa", "xx"))
