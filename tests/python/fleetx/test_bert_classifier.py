"""Labels of texts by BERT: loaders, that it learns, and what it takes over from pre-training."""
import numpy
import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

WORDS = {"fruit": "apple pear plum cherry".split(), "tool": "hammer saw drill pliers".split(), "cloth": "shirt coat hat sock".split()}
SIZES = dict(vocab_size=60, hidden=32, layers=2, heads=4, max_seq_len=16, dropout=0.0)


@pytest.fixture
def folder(tmp_path):
    """Texts of words of one kind among words of none, and text for pre-training."""
    chance = numpy.random.default_rng(1)
    fill = "the of and a in".split()
    lines, sentences = [], []
    for i in range(240):
        label = [*WORDS][i % 3]
        words = [*chance.choice(fill, chance.integers(1, 6)), chance.choice(WORDS[label]), *chance.choice(fill, 2)]
        lines.append(f"{label}\t{' '.join(words)}")
        sentences += [" ".join(words), ""] if i % 8 == 7 else [" ".join(words)]
    (tmp_path / "train.tsv").write_text("\n".join(lines[:180]) + "\n")
    (tmp_path / "val.tsv").write_text("\n".join(lines[180:]) + "\n")
    (tmp_path / "train.txt").write_text("\n".join(sentences))
    (tmp_path / "val.txt").write_text("\n".join(sentences))
    X.applications.Bert(**SIZES, packed=True).get_train_dataloader(tmp_path, tokens=128)  # vocab.txt
    return tmp_path


def classifier(folder, **options):
    return X.applications.BertClassifier(X.applications.BertClassifier.labels_of(folder), **{**SIZES, **options})


def test_it_learns(folder, tmp_path):
    paddle.seed(1)
    model = classifier(folder)
    assert model.labels == ["cloth", "fruit", "tool"]
    loader = model.get_train_dataloader(folder, tokens=256)
    shapes = {str({name: value.shape for name, value in feed.items()}) for feed, in loader}
    assert len(shapes) == 1 and loader.samples == 180
    paddle.optimizer.Adam(learning_rate=3e-3).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer()
    for _ in range(30):
        for feed in loader:
            trainer.exe.run(model.main_prog, feed=feed, fetch_list=[])
    assert trainer.val(model, model.get_val_dataloader(folder, tokens=256))["acc"] > 0.95
    model.save_params(tmp_path / "model.safetensors")
    with static.scope_guard(static.Scope()):
        again = classifier(folder)
        trainer = X.MultiGPUTrainer()
        again.load_params(tmp_path / "model.safetensors")
        assert trainer.val(again, again.get_val_dataloader(folder, tokens=256))["acc"] > 0.95


def test_what_pre_training_learned_is_taken_over(folder, tmp_path):
    bert = X.applications.Bert(**SIZES)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(bert.startup_prog)
    bert.save_params(tmp_path / "bert.safetensors")
    held = static.global_scope().find_var("encoder_0_ffn_0.w_0").get_tensor().numpy().copy()
    with static.scope_guard(static.Scope()):
        model = classifier(folder, dropout=0.1)  # it draws numbers, which has a state that the other one lacks
        exe.run(model.startup_prog)
        label = static.global_scope().find_var("label_output.w_0").get_tensor().numpy().copy()
        model.load_pretrained(tmp_path / "bert.safetensors")
        assert (static.global_scope().find_var("encoder_0_ffn_0.w_0").get_tensor().numpy() == held).all()
        assert (static.global_scope().find_var("label_output.w_0").get_tensor().numpy() == label).all()
        other = X.applications.BertClassifier(["a", "b"], **{**SIZES, "layers": 3})
        exe.run(other.startup_prog)
        with pytest.raises(native.InvalidArgumentError, match="bert.safetensors: has no 'encoder_2_"):
            other.load_pretrained(tmp_path / "bert.safetensors")
        smaller = X.applications.BertClassifier(["a", "b"], **{**SIZES, "layers": 1})
        exe.run(smaller.startup_prog)
        with pytest.raises(native.InvalidArgumentError, match="bert.safetensors: has 'encoder_1_.*', which this model has not"):
            smaller.load_pretrained(tmp_path / "bert.safetensors")
        smaller = X.applications.Bert(**{**SIZES, "layers": 1})
        exe.run(smaller.startup_prog)
        with pytest.raises(native.InvalidArgumentError, match="bert.safetensors: has 'encoder_1_.*', which this model has not"):
            smaller.load_params(tmp_path / "bert.safetensors")


def test_bad_input_is_named(folder):
    model = classifier(folder)
    (folder / "val.tsv").write_text("fruit\tan apple\nship\ta boat\n")
    with pytest.raises(native.InvalidArgumentError, match="val.tsv:2: the label 'ship' is not one of the model's 3: cloth, fruit, tool"):
        model.get_val_dataloader(folder)
    (folder / "val.tsv").write_text("fruit\tan apple\nno tab\n")
    with pytest.raises(native.CorruptFileError, match="val.tsv:2: expected a label, a tab, and a text"):
        model.get_val_dataloader(folder)
    (folder / "val.tsv").write_text("")
    with pytest.raises(native.CorruptFileError, match="val.tsv: no lines"):
        model.get_val_dataloader(folder)
    with pytest.raises(native.InvalidArgumentError, match="tokens is 8; must be at least max_length, 16"):
        model.get_train_dataloader(folder, tokens=8)
    with pytest.raises(native.InvalidArgumentError, match="labels has 1 names; there is nothing to tell apart"):
        X.applications.BertClassifier(["one"], **SIZES)


def test_bad_lines_are_named_left_out_or_repaired(folder):
    model, lines = classifier(folder), (folder / "val.tsv").read_bytes()
    (folder / "val.tsv").write_bytes(lines + b"fruit\ta pl\xfcm\n\nfruit an apple\n")
    with pytest.raises(native.CorruptFileError, match=r"val.tsv:61: byte 11 is not UTF-8 \(bad_lines=skip or bad_lines=replace"):
        model.get_val_dataloader(folder)
    with pytest.warns(UserWarning, match="3 lines left out or repaired; the first: .*val.tsv:61: byte 11 is not UTF-8"):
        assert model.get_val_dataloader(folder, bad_lines="skip").samples == 60
    with pytest.warns(UserWarning):
        assert model.get_val_dataloader(folder, bad_lines="replace").samples == 61
    with pytest.raises(native.InvalidArgumentError, match="bad_lines is 'no'; known: stop, skip, replace"):
        model.get_val_dataloader(folder, bad_lines="no")
    with pytest.raises(native.InvalidArgumentError, match="per_label is 0; must be positive"):
        model.get_train_dataloader(folder, per_label=0)
    (folder / "val.tsv").unlink()
    with pytest.raises(native.InvalidArgumentError, match="val.tsv: no such file; expected lines of a label, a tab, and a text"):
        model.get_val_dataloader(folder)
    vocab = (folder / "vocab-60.txt").read_text()
    (folder / "vocab.txt").write_text(vocab.replace("[CLS]\n", ""))
    with pytest.raises(native.InvalidArgumentError, match=r"the vocabulary has no '\[CLS\]', which every text needs; add it as a line"):
        model.get_train_dataloader(folder)


@pytest.mark.parametrize("pool", ["mean", "first"])
def test_texts_of_a_pack_do_not_see_each_other(folder, pool):
    model = classifier(folder, pool=pool)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(model.startup_prog)
    test = model.main_prog.clone(for_test=True)
    logits = []
    for tokens in (16, 256):
        found = [(exe.run(test, feed=feed, fetch_list=[model.logits])[0], int(feed["label_weight"].sum()))
                 for feed, in model.get_val_dataloader(folder, tokens=tokens)]
        logits.append(numpy.concatenate([values[:count] for values, count in found]))
    assert logits[0].shape == (60, 3)
    numpy.testing.assert_allclose(*logits, rtol=1e-4, atol=1e-6)
    with pytest.raises(native.InvalidArgumentError, match="pool is 'last'; known: mean, first"):
        classifier(folder, pool="last")


def test_few_texts_of_each_label(folder):
    def texts(**options):
        loader = classifier(folder).get_train_dataloader(folder, tokens=256, per_label=5, **options)
        return sorted(tuple(text) for text in loader._texts), numpy.bincount(loader.answers).tolist()
    first, counts = texts()
    assert counts == [5, 5, 5] and texts() == (first, counts) and texts(seed=1)[0] != first
