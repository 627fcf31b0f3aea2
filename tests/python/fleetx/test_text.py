"""Tokenizers and batches of text. The peers are compared with where they are installed: FLEETX_PEERS names a virtual
environment (default: .venv-peers)."""
import glob
import gettext
import json
import os
import pathlib
import subprocess

import numpy
import pytest

import fleetx as X
from paddle._native import native

ROOT = pathlib.Path(__file__).resolve().parents[3]
PEERS = pathlib.Path(os.environ.get("FLEETX_PEERS", ROOT / ".venv-peers")) / "bin/python"


def real_text():
    """Lines in many languages from the message catalogues of this machine."""
    lines = []
    for language in ["de", "fr", "ja", "zh_CN", "ko", "ru", "ar", "hi", "th", "vi", "el", "he", "tr"]:
        for file in sorted(glob.glob(f"/usr/share/locale/{language}/LC_MESSAGES/*.mo"))[:8]:
            with open(file, "rb") as catalogue:
                texts = gettext.GNUTranslations(catalogue)._catalog.values()
            lines += [" ".join(text.split("\n")) for text in texts if isinstance(text, str) and text][:200]
    return lines


def peer(module, script, *arguments):
    """What a script prints in the environment of the peers, as JSON."""
    found = PEERS.exists() and subprocess.run([PEERS, "-c", f"import {module}"], capture_output=True).returncode == 0
    if not found:
        pytest.skip(f"no {module} in {PEERS}: bench/setup-peers.sh tokenizers installs it")
    done = subprocess.run([PEERS, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def book(tmp_path):
    file = tmp_path / "book.txt"
    sentences = ["The quick brown fox jumps over the lazy dog .", "Pack my box with five dozen liquor jugs .",
                 "How vexingly quick daft zebras jump !", "Sphinx of black quartz , judge my vow ."]
    file.write_text("".join(sentences[(3 * i + i // 7) % 4] + "\n" + "\n" * (i % 9 == 8) for i in range(400)))
    return file


@pytest.fixture
def tokenizer(book, tmp_path):
    assert X.text.learn_wordpiece(book, tmp_path / "vocab.txt", size=120) <= 120
    return X.text.WordPieceTokenizer(tmp_path / "vocab.txt")


def test_wordpiece(tokenizer):
    tokens = tokenizer.encode("The FOX jumps!")
    assert tokenizer.decode(tokens) == "the fox jumps !"
    assert [tokenizer.id_to_token(t) for t in tokens] == tokenizer.tokenize("The FOX jumps!")
    assert tokenizer.encode_batch(["fox", "dog"]) == [tokenizer.encode("fox"), tokenizer.encode("dog")]
    assert tokenizer.token_to_id("[MASK]") == 4 and tokenizer.token_to_id("never seen") is None
    assert len(tokenizer) == len(tokenizer.vocabulary)


def test_bpe(book, tmp_path):
    assert X.text.learn_bpe(book, tmp_path / "codes", tmp_path / "vocab", merges=30) == 30
    bpe = X.text.BPETokenizer(tmp_path / "codes", tmp_path / "vocab")
    line = "The quick brown fox"
    assert bpe.segment(line).replace("@@ ", "") == line
    assert bpe.decode(bpe.encode(line)) == line
    assert bpe.vocabulary[:3] == ["<s>", "<e>", "<unk>"]


def test_bad_input_is_named(tokenizer, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\nnot \xff\n")
    with pytest.raises(native.CorruptFileError, match=r"bad.txt:2: byte 5 is not UTF-8"):
        X.dataset.BertLoader(bad, tokenizer)
    with pytest.raises(native.InvalidArgumentError, match="bad_lines is 'ignore'; known: stop, skip, replace"):
        X.dataset.BertLoader(bad, tokenizer, bad_lines="ignore")
    (tmp_path / "vocab2.txt").write_text("a\nb\na\n")
    with pytest.raises(native.CorruptFileError, match=r"vocab2.txt:3: 'a' is already in line 1"):
        X.text.WordPieceTokenizer(tmp_path / "vocab2.txt")
    (tmp_path / "vocab3.txt").write_text("[UNK]\na\n")
    with pytest.raises(native.InvalidArgumentError, match=r"has no '\[PAD\]', which padding needs"):
        X.dataset.BertLoader(tmp_path / "vocab2.txt", X.text.WordPieceTokenizer(tmp_path / "vocab3.txt"))
    with pytest.raises(TypeError, match="lower_case"):
        X.text.WordPieceTokenizer(tmp_path / "vocab3.txt", lower_case=True)


def test_bert_loader(book, tokenizer):
    loader = X.dataset.BertLoader(book, tokenizer, batch_size=4, max_length=64)
    batches = [batch for batch, in loader]
    assert len(batches) == len(loader) > 5
    assert loader.corpus.documents == 45 and loader.padding < 0.2
    first = batches[0]
    assert first["src_ids"].shape == first["sent_ids"].shape == first["pos_ids"].shape
    assert first["mask_label"].shape == first["mask_weight"].shape and first["labels"].shape == (4, 1)
    again = X.dataset.BertLoader(book, tokenizer, batch_size=4, max_length=64)
    assert all((a[name] == b[name]).all() for a, (b,) in zip(batches, again) for name in a)
    halves = [X.dataset.BertLoader(book, tokenizer, batch_size=4, max_length=64, rank=rank, world=2) for rank in (0, 1)]
    for want, (got,) in zip(batches[1::2], halves[1]):
        assert all((want[name] == got[name]).all() for name in want)
    assert abs(len(halves[0]) * 2 - len(batches)) <= 1


def test_json_lines(tokenizer, tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({"body": "The fox.\nThe dog."}) + "\n" for _ in range(20)))
    loader = X.dataset.BertLoader(file, tokenizer, batch_size=2, format="jsonl", field="body")
    assert loader.corpus.documents == 20 and loader.corpus.sentences == 40
    with pytest.raises(native.CorruptFileError, match=r"a.jsonl:1: the object has no 'text'"):
        X.dataset.BertLoader(file, tokenizer, format="jsonl")


def test_translation_loader(book, tmp_path):
    X.text.learn_bpe(book, tmp_path / "codes", tmp_path / "vocab", merges=60)
    bpe = X.text.BPETokenizer(tmp_path / "codes", tmp_path / "vocab")
    lines = [line for line in book.read_text().split("\n") if line]
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{' '.join(reversed(line.split()))}\n" for line in lines))
    loader = X.dataset.TranslationLoader(tmp_path / "pairs.tsv", None, bpe, tokens=512, multiple=1)
    total = 0
    for batch, in loader:
        rows, length = batch["src_word"].shape
        assert rows * max(length, batch["trg_word"].shape[1]) <= 512
        total += rows
        assert (batch["trg_word"][:, 0] == 0).all()
        words = batch["lbl_weight"][:, :, 0] > 0
        assert (batch["lbl_word"][:, :-1, 0][words[:, 1:]] == batch["trg_word"][:, 1:][words[:, 1:]]).all()
    assert total == loader.samples == len(lines)
    assert loader.padding < 0.05


def test_padding_of_real_text_is_below_5_percent(tmp_path):
    lines = real_text()
    if len(lines) < 2000:
        pytest.skip("this machine has no message catalogues in /usr/share/locale")
    text = tmp_path / "real.txt"
    text.write_text("".join(line + "\n" + "\n" * (i % 50 == 49) for i, line in enumerate(lines)))
    X.text.learn_wordpiece(text, tmp_path / "vocab.txt", size=8000)
    tokenizer = X.text.WordPieceTokenizer(tmp_path / "vocab.txt")
    for size in ({"batch_size": 16}, {"tokens": 4096}):
        loader = X.dataset.BertLoader(text, tokenizer, max_length=128, **size)
        real = sum(int((batch["input_mask"] == 0).sum()) for batch, in loader)
        all_tokens = sum(batch["src_ids"].size for batch, in X.dataset.BertLoader(text, tokenizer, max_length=128, **size))
        assert loader.padding < 0.05 and 1 - real / all_tokens < 0.05


def test_wordpiece_equals_hugging_face(tmp_path):
    lines = real_text() + ["", " ", "a\tb", "x" * 101, "naïve café ΑΣ İstanbul", "50€ – “quote”…", "a\u200bb\u00adc"]
    (tmp_path / "lines.json").write_text(json.dumps(lines))
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    for lowercase in (True, False):
        vocab = tmp_path / f"vocab{lowercase}.txt"
        X.text.learn_wordpiece(tmp_path / "lines.txt", vocab, size=6000, lowercase=lowercase)
        want = peer("tokenizers", "import json, sys, tokenizers\n"
                    "t = tokenizers.BertWordPieceTokenizer(sys.argv[1], lowercase=sys.argv[3] == 'True')\n"
                    "lines = json.load(open(sys.argv[2]))\n"
                    "print(json.dumps([e.ids for e in t.encode_batch(lines, add_special_tokens=False)]))",
                    vocab, tmp_path / "lines.json", lowercase)
        assert X.text.WordPieceTokenizer(vocab, lowercase=lowercase).encode_batch(lines) == want


def test_a_path_is_no_tokenizer(tmp_path):
    (tmp_path / "text").write_text("a b\n")
    for loader in (lambda: X.dataset.BertLoader(tmp_path / "text", "vocab.txt"),
                   lambda: X.dataset.TranslationLoader(tmp_path / "text", None, "codes")):
        with pytest.raises(TypeError, match="expected a WordPieceTokenizer or BPETokenizer of fleetx.text"):
            loader()


def test_bpe_equals_subword_nmt(tmp_path):
    lines = [" ".join(line.split()) for line in real_text()[::4]]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    want = peer("subword_nmt", "import collections, io, json, sys\n"
                "from subword_nmt import apply_bpe, learn_bpe\n"
                "text, codes = open(sys.argv[1], encoding='utf-8').read(), io.StringIO()\n"
                "sys.stderr = io.StringIO()\n"
                "learn_bpe.learn_bpe(io.StringIO(text, newline='\\n'), codes, 500)\n"
                "codes.seek(0)\n"
                "bpe = apply_bpe.BPE(codes)\n"
                "print(json.dumps([codes.getvalue(), [bpe.process_line(l) for l in text.split('\\n')]]))",
                tmp_path / "lines.txt")
    X.text.learn_bpe(tmp_path / "lines.txt", tmp_path / "codes", tmp_path / "vocab", merges=500)
    assert (tmp_path / "codes").read_text() == want[0]
    bpe = X.text.BPETokenizer(tmp_path / "codes")
    assert [bpe.segment(line) for line in lines + [""]] == want[1]
