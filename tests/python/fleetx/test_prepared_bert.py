"""Samples for BERT whose words are numbers already."""
import gzip

import numpy
import pytest

import fleetx as X
import paddle

PAD, CLS, SEP, MASK = range(4)


def tiny(**options):
    return X.applications.Bert(**{"vocab_size": 40, "hidden": 32, "layers": 1, "heads": 2, "max_seq_len": 16, "dropout": 0.0,
                                  **options})


@pytest.fixture
def vocab(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(36)]))
    return path


@pytest.fixture
def folder(tmp_path):
    """Two sentences of words that count on: of sample s, from 4 + s % 12 on."""
    (tmp_path / "data").mkdir()
    for part in range(2):
        with gzip.open(tmp_path / "data" / f"part-{part}.gz", "wt") as file:
            for s in range(part, 40, 2):
                first = [4 + s % 12 + i for i in range(2 + s % 3)]
                second = [first[-1] + 1 + i for i in range(4)]
                words = [CLS, *first, SEP, *second, SEP]
                segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
                file.write(";".join(" ".join(map(str, v)) for v in (words, segments, range(len(words)))) + ";1\n")
    return tmp_path / "data"


def test_samples_with_hidden_words_and_exchanged_sentences(folder, vocab):
    model = tiny()
    loader = model.load_digital_dataset_from_file(folder, vocab, batch_size=64, max_seq_len=16)
    samples = 0
    for feed, in loader:
        assert set(feed) == {v.name for v in model.inputs} and len(feed["src_ids"]) <= 4 and feed["src_ids"].shape[1] == 16
        words = feed["src_ids"].copy().reshape(-1)
        real = feed["mask_weight"][:, 0] > 0
        words[feed["mask_pos"][real]] = feed["mask_label"][real, 0]
        for row, label, mask, segments in zip(words.reshape(-1, 16), feed["labels"][:, 0], feed["input_mask"][:, 0, 0],
                                              feed["sent_ids"]):
            length = int((mask == 0).sum())
            assert row[0] == CLS and row[length - 1] == SEP and not row[length:].any() and (mask[length:] == -1e9).all()
            middle = list(row).index(SEP)
            assert (segments[:length] == [0] * (middle + 1) + [1] * (length - middle - 1)).all()
            assert (row[middle + 1] == row[middle - 1] + 1) == label  # does the second sentence count on?
            samples += 1
        assert (feed["mask_label"][real] >= 4).all()
    assert samples == 80
    first, second = ([f[0]["src_ids"].tobytes() for f in loader] for _ in range(2))
    assert first != second
    again = model.load_digital_dataset_from_file(folder, vocab, 64, 16)
    next(iter(again))
    assert first == [f[0]["src_ids"].tobytes() for f in again]


def test_it_trains(folder, vocab):
    model = tiny(ragged=True)
    loader = model.load_digital_dataset_from_file(folder, vocab, batch_size=8, in_tokens=False)
    paddle.optimizer.Adam(learning_rate=3e-3).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer()
    trainer.fit(model, loader, 4)
    values = [value for _, value in trainer.history["train loss"]]
    assert len(values) == 40 and numpy.mean(values[-5:]) < numpy.mean(values[:5])


def test_samples_that_are_ready(tmp_path, vocab):
    (tmp_path / "ready").mkdir()
    line = f"{CLS} 5 {MASK} {SEP} 7 {SEP} 0 0;1 1 1 1 1 1 0 0;0 0 0 0 1 1 0 0;2 0;6 0;1.0 0.0;1"
    (tmp_path / "ready" / "part").write_text(line + "\n" + line + "\n")
    feed, = next(iter(tiny().load_digital_dataset_from_file(tmp_path / "ready", vocab, 16 * 2, 16)))
    assert feed["src_ids"][1].tolist() == [CLS, 5, MASK, SEP, 7, SEP] + [0] * 10 and feed["labels"].tolist() == [[1], [1]]
    real = feed["mask_weight"][:, 0] > 0
    assert feed["mask_pos"][real].tolist() == [2, 18] and feed["mask_label"][real].tolist() == [[6], [6]]


def test_bad_samples(tmp_path, vocab, folder, capsys):
    model = tiny()
    (tmp_path / "bad").mkdir()
    with pytest.raises(ValueError, match="bad has no files"):
        model.load_digital_dataset_from_file(tmp_path / "bad", vocab, 64, 16)
    for text, message in (("1 2;0 0", "line 1: 2 fields; a sample has 4 or 7"), ("1 x;0 0;0 1;1", "line 1: .*'x'"),
                          ("1 5 6;0 0 0;0 1 2;1", r"line 1: a sample has a \[SEP\]")):
        (tmp_path / "bad" / "part").write_text(text + "\n")
        with pytest.raises(ValueError, match=message):
            list(model.load_digital_dataset_from_file(tmp_path / "bad", vocab, 64, 16))
    with pytest.raises(ValueError, match="8 tokens has no room for a sample of 16"):
        model.load_digital_dataset_from_file(folder, vocab, 8, 16)
    (tmp_path / "short.txt").write_text("[PAD]\n[CLS]\n")
    with pytest.raises(ValueError, match=r"short.txt lacks \[SEP\], \[MASK\]"):
        model.load_digital_dataset_from_file(folder, tmp_path / "short.txt", 64, 16)
    model.load_digital_dataset_from_file(folder, vocab, 64)
    assert "of more than 16 words are left out; Bert(max_seq_len=512)" in capsys.readouterr().out
    with pytest.raises(NotImplementedError, match="get_train_dataloader"):
        tiny(packed=True).load_digital_dataset_from_file(folder, vocab)


def test_text_in_pieces_is_refused():
    with pytest.raises(NotImplementedError, match="bpe.codes and bpe.vocab"):
        X.applications.Transformer(vocab_size=40, max_length=16, layers=1, hidden=16, heads=2).load_wmt16_dataset_from_file(
            "a", "b", "c")
