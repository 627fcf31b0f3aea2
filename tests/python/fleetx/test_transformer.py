"""The Transformer as an application: programs, loaders, that it learns, and translations."""
import math
import os
import random

import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

LETTERS = {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": "6"}


@pytest.fixture
def folder(tmp_path):
    """Words, and what they are in another alphabet."""
    chance = random.Random(3)
    lines = []
    for _ in range(4100):
        word = "".join(chance.choice("abcdef") for _ in range(chance.randint(2, 7)))
        lines.append(f"{word}\t{''.join(LETTERS[letter] for letter in word)}")
    (tmp_path / "train.tsv").write_text("\n".join(lines[:4000]) + "\n")
    (tmp_path / "val.tsv").write_text("\n".join(lines[4000:]) + "\n")
    return tmp_path


def tiny(**options):
    return X.applications.Transformer(**{"size": "small", "vocab_size": 60, "hidden": 32, "layers": 1, "intermediate": 64,
                                         "dropout": 0.0, "label_smoothing": 0.02, **options})


def test_it_learns_to_translate(folder, tmp_path):
    paddle.seed(1)
    model = tiny()
    loader = model.get_train_dataloader(folder, tokens=512, merges=1)
    assert (folder / "bpe.vocab").exists() and len(model.tokenizer) <= 60
    paddle.optimizer.Adam(learning_rate=4e-3).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer()
    before = trainer.val(model, model.get_val_dataloader(folder))
    for _ in range(8):
        for feed in loader:
            trainer.exe.run(model.main_prog, feed=feed, fetch_list=[])
    after = trainer.val(model, model.get_val_dataloader(folder))
    assert before["perplexity"] > 20 and after["perplexity"] < 1.3 and after["token_acc"] > 0.95
    assert after["perplexity"] == pytest.approx(math.exp(after["token_loss"]))
    greedy, beams = (model.bleu(folder, beams=n, unit="char") for n in (1, 4))
    assert greedy > 90 and beams > 90
    assert model.translate("abba") == "1221"
    assert model.translate(["fed", "abba"], beams=2) == ["654", "1221"]

    model.save_params(tmp_path / "model.safetensors")
    again = tiny()
    again.load_translation_from_file(folder / "train.tsv", None, model.tokenizer)
    with static.scope_guard(static.Scope()):
        exe = static.Executor(paddle.CPUPlace())
        exe.run(again.startup_prog)
        again.load_params(tmp_path / "model.safetensors")
        assert again.translate("abba") == "1221"


def test_little_is_padding(folder):
    model = tiny()
    words = padded = 0
    for feed, in model.get_train_dataloader(folder, tokens=512, merges=1):
        words += feed["lbl_weight"].sum() + (feed["src_mask"] == 0).sum()
        padded += feed["lbl_weight"].size + feed["src_mask"].size
    assert 1 - words / padded < 0.05


def test_sizes():
    model = X.applications.Transformer(vocab_size=100)
    assert len(model.checkpoints) == 12 and model.logits.shape[2] == 100
    big = X.applications.TransformerBig(vocab_size=100, target_vocab_size=120)
    assert big.logits.shape[2] == 120
    assert {"source_embedding.w_0", "target_embedding.w_0"} <= set(big.parameter_list())


def test_two_files_are_read(folder):
    for part in ("train", "val"):
        pairs = [line.split("\t") for line in (folder / f"{part}.tsv").read_text().splitlines()]
        for side, name in enumerate(("src", "trg")):
            (folder / f"{part}.{name}").write_text("".join(pair[side] + "\n" for pair in pairs))
        os.remove(folder / f"{part}.tsv")
    assert tiny().get_train_dataloader(folder, merges=1).samples == 4000


def test_bad_input_is_named(folder):
    with pytest.raises(native.InvalidArgumentError, match="size is 'huge'; known: small, base, big"):
        tiny(size="huge")
    with pytest.raises(native.InvalidArgumentError, match="multiple of heads"):
        tiny(hidden=30)
    model = tiny(vocab_size=8)
    with pytest.raises(native.InvalidArgumentError, match="tokens, but the model 8; give it vocab_size="):
        model.get_train_dataloader(folder, merges=1)
    with pytest.raises(native.InvalidArgumentError, match="make a loader first"):
        model.translate("abc")
    with pytest.raises(native.InvalidArgumentError, match="unit is 'byte'"):
        X.text.bleu(["a"], ["a"], unit="byte")
    (folder / "val.tsv").write_text("abc\n")
    with pytest.raises(native.CorruptFileError, match="val.tsv:1"):
        tiny().get_val_dataloader(folder)


def test_bad_pairs_are_named_or_left_out(folder, capfd):
    model = tiny()
    pairs = (folder / "train.tsv").read_bytes() + b"ab\xff\t12\n" + b"abcdef" * 100 + b"\t1\n"
    (folder / "train.tsv").write_bytes(pairs)
    with pytest.raises(native.CorruptFileError, match="train.tsv:4001: byte 3 is not UTF-8"):
        model.get_train_dataloader(folder, merges=1)
    assert model.get_train_dataloader(folder, merges=1, bad_lines="skip").samples == 4000
    said = capfd.readouterr()
    said = said.out + said.err
    assert "1 lines left out; the first: " in said and "train.tsv:4001: byte 3 is not UTF-8" in said
    assert "1 pairs of more than 255 tokens left out; the first: " in said and "train.tsv:4002" in said
    static.Executor().run(model.startup_prog)
    (folder / "val.tsv").write_bytes(b"abc\t123\nabc\n")
    with pytest.raises(native.CorruptFileError, match="val.tsv:2: expected source, a tab, and target"):
        model.bleu(folder)
    model.bleu(folder, bad_lines="skip")
    with pytest.raises(native.InvalidArgumentError, match="expected a str or a list of them"):
        model.translate(b"abc")


def test_a_vocabulary_may_be_smaller_than_the_model(folder):
    model = tiny(vocab_size=500)
    model.get_train_dataloader(folder, merges=1)
    static.Executor().run(model.startup_prog)  # has learned nothing: any word is as good
    assert len(model.tokenizer) < 40
    for beams in (1, 4):
        assert len(model.translate(["abc", "fed"], beams=beams)) == 2


def test_names_of_this_machine(tmp_path, capsys):
    try:
        folder = X.dataset.local_names("uk", str(tmp_path / "names"))
    except native.InvalidArgumentError as e:
        assert "install Debian's iso-codes" in str(e)
        pytest.skip("iso-codes is not installed: no names to look at")
    assert "names: " in capsys.readouterr().out
    pairs = [line.split("\t") for line in open(os.path.join(folder, "train.tsv"), encoding="utf-8").read().splitlines()]
    assert len(pairs) > 1000 and all(len(pair) == 2 for pair in pairs)
    with pytest.raises(native.InvalidArgumentError, match="0 names in 'xx'"):
        X.dataset.local_names("xx", str(tmp_path / "none"))


def test_packs_give_the_same_and_learn(folder):
    paddle.seed(1)
    model = tiny(packed=True)
    loader = model.get_train_dataloader(folder, tokens=512, merges=1)
    assert loader.padding < 0.03
    paddle.optimizer.Adam(learning_rate=4e-3).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer()
    for _ in range(8):
        for feed in loader:
            trainer.exe.run(model.main_prog, feed=feed, fetch_list=[])
    packed = trainer.val(model, model.get_val_dataloader(folder))
    assert packed["perplexity"] < 1.3 and model.bleu(folder, unit="char") > 90
    padded = tiny()
    loader = padded.load_translation_from_file(folder / "val.tsv", None, model.tokenizer, phase="val")
    for name, value in trainer.val(padded, loader).items():
        assert packed[name] == pytest.approx(value, rel=1e-4)


def test_messages_of_this_machine(tmp_path, capsys):
    try:
        folder = X.dataset.local_messages("de", str(tmp_path / "messages"))
    except native.InvalidArgumentError as e:
        assert "install programs with translations" in str(e)
        pytest.skip("no translated programs are installed: no messages to look at")
    assert "messages: " in capsys.readouterr().out
    pairs = [line.split("\t") for line in open(os.path.join(folder, "train.tsv"), encoding="utf-8").read().splitlines()]
    assert len(pairs) > 1000 and all(len(pair) == 2 and all(pair) for pair in pairs)
    with pytest.raises(native.InvalidArgumentError, match="0 messages in 'xx'"):
        X.dataset.local_messages("xx", str(tmp_path / "none"))
