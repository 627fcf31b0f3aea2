"""Sections of Debian's packages: texts with labels, and text without."""
import importlib
import os

import pytest

import fleetx as X
from paddle._native import native

SECTIONS = ("games", "sound")
module = importlib.import_module("fleetx.dataset.local_packages")  # the package has a function of this name


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """Lists of apt: sources of two packages each."""
    if not os.path.exists(module.HELPER):
        pytest.skip("no apt here, whose lists these are")
    packages, descriptions = [], []
    for i in range(600):
        section = ("games", "sound", "contrib/net")[i % 3]
        for name, extra in ((f"p{i}", ""), (f"p{i}-data", f"Source: p{i} (1.0)\n")):
            packages.append(f"Package: {name}\n{extra}Section: {section}\nSize: 1\n")
            descriptions.append(f"Package: {name}\nDescription-md5: 0\nDescription-en: title of {name}\n It does {section} number"
                                f" {i}. It\n also does others.\n .\n A second paragraph of {name}.\n")
    (tmp_path / "Packages").write_text("\n".join(packages))
    (tmp_path / "Translation-en").write_text("\n".join(descriptions))
    monkeypatch.setattr(module, "_lists", lambda: ([str(tmp_path / "Packages")], [str(tmp_path / "Translation-en")]))
    return tmp_path


def test_texts_with_labels_and_without(lists, capsys):
    folder = X.dataset.local_packages(str(lists / "set"), SECTIONS)
    assert "packages: 200 of 2 sections of Debian for training" in capsys.readouterr().out
    parts = {name: (lists / "set" / name).read_text() for name in ("train.tsv", "val.tsv", "train.txt", "val.txt")}
    train, val = ([line.split("\t") for line in parts[f"{p}.tsv"].splitlines()] for p in ("train", "val"))
    assert len(train) == len(val) == 200 and {label for label, _ in train} == set(SECTIONS)
    assert not {text for _, text in train} & {text for _, text in val}
    label, text = train[0]
    assert text.startswith("title of p") and f" It does {label} number " in text and " It also does others. A second" in text
    assert "-data" not in "".join(parts.values())  # a source is there once
    held_out = {text.split(" It does")[0] for _, text in val}
    assert not held_out & set(parts["train.txt"].splitlines()) and not held_out & set(parts["val.txt"].splitlines())
    assert parts["train.txt"].count("\n\n") + parts["val.txt"].count("\n\n") == 400
    assert X.applications.BertClassifier.labels_of(folder) == list(SECTIONS)


def test_what_is_missing_is_named(lists, monkeypatch):
    with pytest.raises(native.InvalidArgumentError, match="less than 200 packages in section 'ships'"):
        X.dataset.local_packages(str(lists / "set"), ("games", "ships"))
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(native.UnsupportedError, match="no apt-get here: .* give a folder with train.tsv"):
        X.dataset.local_packages(str(lists / "other"))
