"""BERT as an application: programs, loaders, and that it learns."""
import numpy
import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native


@pytest.fixture
def folder(tmp_path):
    """Documents in which each word tells the next: d documents of counting words, from another one on."""
    words = "zero one two three four five six seven eight nine ten eleven".split()
    lines = []
    for d in range(60):
        lines += [" ".join(words[(d + s + i) % 12] for i in range(6)) for s in range(8)] + [""]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    (tmp_path / "val.txt").write_text("\n".join(lines[:90]))
    return tmp_path


def tiny(**options):
    return X.applications.Bert(**{"vocab_size": 60, "hidden": 64, "layers": 1, "heads": 4, "max_seq_len": 32, "dropout": 0.0,
                                  **options})


def test_it_learns_hidden_words(folder):
    paddle.seed(1)
    model = tiny()
    loader = model.get_train_dataloader(folder, batch_size=8)
    assert (folder / "vocab-60.txt").exists()
    paddle.optimizer.Adam(learning_rate=1e-3).minimize(model.loss, model.startup_prog)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(model.startup_prog)
    losses = []
    for _ in range(24):
        for feed in loader:
            losses.append(float(exe.run(model.main_prog, feed=feed, fetch_list=[model.target["word_loss"]])[0].item()))
    assert numpy.mean(losses[:3]) > 3.5
    assert numpy.mean(losses[-20:]) < 1.7  # who knows the twelve words, but not their order, has log 12 = 2.48
    test = model.main_prog.clone(for_test=True)
    feed = next(iter(model.get_val_dataloader(folder, batch_size=8)))
    words, = exe.run(test, feed=feed, fetch_list=[model.target["word_acc"]])
    assert 0 < float(words.item()) <= 1


def test_places_that_fill_up_do_not_count(folder):
    model = tiny()
    exe = static.Executor(paddle.CPUPlace())
    exe.run(model.startup_prog)
    feed = next(iter(model.get_val_dataloader(folder, batch_size=4)))[0]
    names = ["word_loss", "word_acc"]
    real = feed["mask_weight"][:, 0] > 0
    only = {**feed, **{name: feed[name][real] for name in ("mask_pos", "mask_label", "mask_weight")}}
    more = {**feed, "mask_pos": numpy.concatenate([feed["mask_pos"], [0, 1]]),
            "mask_label": numpy.concatenate([feed["mask_label"], [[7], [8]]]),
            "mask_weight": numpy.concatenate([feed["mask_weight"], numpy.zeros([2, 1], "float32")])}
    want, got = (exe.run(model.main_prog, feed=f, fetch_list=[model.target[n] for n in names]) for f in (only, more))
    for a, b in zip(want, got):
        numpy.testing.assert_allclose(a, b, rtol=1e-5)


def test_sizes():
    assert len(X.applications.BertBase(vocab_size=100).checkpoints) == 12
    model = X.applications.BertLarge(vocab_size=100)
    assert len(model.checkpoints) == 24
    assert [v.shape[1] for v in model.inputs[:2]] == [128, 128]


def test_bad_input_is_named(folder):
    (folder / "vocab.txt").write_text("\n".join(f"w{i}" for i in range(61)) + "\n[UNK]\n")
    with pytest.raises(native.InvalidArgumentError, match="has 62 tokens, but the model 60; give it vocab_size=62"):
        tiny().get_train_dataloader(folder)
    with pytest.raises(native.InvalidArgumentError, match="hidden is 30; must be a multiple of heads, 4"):
        tiny(hidden=30, heads=4)
    with pytest.raises(TypeError, match="seq_len"):
        X.applications.BertBase(seq_len=5)
    with pytest.raises(native.InvalidArgumentError, match="nothing: has no vocab.txt, and no train.txt to learn one from"):
        tiny().get_train_dataloader(folder / "nothing")


def test_each_size_has_its_own_vocabulary(folder):
    sizes = {size: tiny(vocab_size=size) for size in (40, 60)}
    for model in sizes.values():
        model.get_train_dataloader(folder)
    assert len(sizes[40].tokenizer) <= 40 < len(sizes[60].tokenizer) <= 60
    tiny().get_train_dataloader(folder, lowercase=False)
    assert (folder / "vocab-60-cased.txt").exists()
    (folder / "vocab.txt").write_text((folder / "vocab-40.txt").read_text())  # the user's own comes first
    model = tiny()
    model.get_train_dataloader(folder)
    assert len(model.tokenizer) == len(sizes[40].tokenizer)


def test_ragged_batches_give_the_same_and_are_hardly_padded(folder):
    model = tiny()
    exe = static.Executor(paddle.CPUPlace())
    exe.run(model.startup_prog)
    feed = next(iter(model.get_val_dataloader(folder, batch_size=4, short_rate=1.0)))[0]
    outs = ["word_loss", "sentence_acc"]
    want = exe.run(model.main_prog.clone(for_test=True), feed=feed, fetch_list=[model.target[n] for n in outs])

    ragged = tiny(ragged=True)
    assert set(ragged.parameter_list()) == set(model.parameter_list())
    words = int((feed["input_mask"] == 0).sum(axis=-1).max())
    rows = len(feed["src_ids"])
    cut = {name: feed[name][..., :words] for name in ("src_ids", "sent_ids", "input_mask")}
    places = feed["mask_pos"] // 32 * words + feed["mask_pos"] % 32
    got = exe.run(ragged.main_prog.clone(for_test=True), fetch_list=[ragged.target[n] for n in outs],
                  feed={**feed, **cut, "mask_pos": places, "pos_ids": numpy.tile(numpy.arange(words), [rows, 1])})
    for a, b in zip(want, got):
        numpy.testing.assert_allclose(a, b, rtol=1e-4)


def test_real_text_is_padded_by_less_than_5_percent(tmp_path):
    try:
        folder = X.dataset.local_text(str(tmp_path / "text"), most_bytes=3_000_000)
    except native.InvalidArgumentError as e:
        pytest.skip(f"no text on this machine: {e}")
    model = X.applications.Bert(vocab_size=2000, hidden=16, layers=1, heads=2, ragged=True)
    loader = model.get_train_dataloader(folder, batch_size=16, short_rate=0.1)
    real = padded = 0
    shapes = set()
    for feed, in loader:
        real, padded = real + int((feed["input_mask"] == 0).sum()), padded + feed["input_mask"].size
        shapes.add(feed["src_ids"].shape)
    assert 1 - real / padded < 0.05 and len(shapes) > 1, (1 - real / padded, shapes)
    assert loader.padding < 0.05
    packed = X.applications.Bert(vocab_size=2000, hidden=16, layers=1, heads=2, packed=True)
    for fill in (True, False):
        assert packed.get_train_dataloader(folder, batch_size=16, fill=fill).padding < 0.01


def test_packed_batches_give_the_same(folder):
    """Each sample of a pack as a row of a padded batch."""
    model = tiny()
    exe = static.Executor(paddle.CPUPlace())
    exe.run(model.startup_prog)
    packed = tiny(packed=True)
    assert set(packed.parameter_list()) == set(model.parameter_list())
    tiny().get_train_dataloader(folder)  # its vocabulary
    feed = next(iter(packed.get_val_dataloader(folder, tokens=96, fill=False)))[0]
    names = ["word_loss", "word_acc", "sentence_acc"]

    def losses(net, feed):
        program = net.main_prog.clone(for_test=True)
        return exe.run(program, feed=feed, fetch_list=[net.loss, *(net.target[n] for n in names)])

    count = int(feed["label_weight"].sum())
    rows = {name: numpy.zeros([count, 32], "int64") for name in ("src_ids", "sent_ids")}
    mask, at = numpy.full([count, 1, 1, 32], -1e9, "float32"), feed["read_pos"][feed["mask_pos"]]
    places = at.copy()
    for i in range(count):
        begin, length = feed["read_pos"][feed["seq_first"][i]], feed["seq_len"][i]
        for name in rows:
            rows[name][i, :length] = feed[name][0, begin:begin + length]
        mask[i, ..., :length] = 0
        mine = (at >= begin) & (at < begin + length)
        places[mine] = at[mine] - begin + 32 * i
    hidden = {name: feed[name] for name in ("mask_label", "mask_weight")}
    want = losses(model, {**rows, **hidden, "input_mask": mask, "mask_pos": places, "labels": feed["labels"][:count]})
    assert count > 3 and feed["seq_len"].sum() < 96
    for a, b in zip(want, losses(packed, feed)):
        numpy.testing.assert_allclose(a, b, rtol=1e-4)


def test_a_packed_model_learns_by_one_plan(folder):
    paddle.seed(1)
    model = tiny(packed=True)
    loader = model.get_train_dataloader(folder, batch_size=8)  # 8 x 32 tokens
    paddle.optimizer.Adam(learning_rate=1e-3).minimize(model.loss, model.startup_prog)
    trainer = X.MultiGPUTrainer()
    losses, shapes = [], set()
    for _ in range(24):
        for feed, in loader:
            shapes.add(str({name: value.shape for name, value in feed.items()}))
            losses.append(trainer.exe.run(model.main_prog, feed=feed, fetch_list=[model.target["word_loss"]])[0].item())
    assert len(shapes) == 1
    assert numpy.mean(losses[:3]) > 3.5 and numpy.mean(losses[-20:]) < 1.7
    assert trainer.val(model, model.get_val_dataloader(folder))["word_acc"] > 0.3
    with pytest.raises(native.InvalidArgumentError, match="either ragged or packed"):
        tiny(packed=True, ragged=True)
