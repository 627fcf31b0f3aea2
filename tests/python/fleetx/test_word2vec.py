import collections

import numpy as np
import pytest

import fleetx as X
import paddle
from fleetx.dataset.skip_gram import SkipGram
from paddle import static
from paddle._native import native


@pytest.fixture
def words(tmp_path):
    """(dict, [file])"""
    (tmp_path / "dict").write_text("".join(f"w{i} {100 if i < 2 else 1}\n" for i in range(6)))
    (tmp_path / "part-0").write_text("0 1 2\n3 4\n\n5\n")
    return str(tmp_path / "dict"), [str(tmp_path / "part-0")]


def pairs(loader):
    return collections.Counter((int(a), int(b)) for f in loader for a, b in zip(f["input_word"], f["true_label"]))


def test_pairs_stay_in_their_line_and_window(words):
    model = X.applications.Word2vec(dict_size=6, embedding_size=4, neg_num=2)
    near = {(0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (4, 3)}
    loader = model.load_reader_from_file(*words, window_size=1, batch_size=4)
    assert pairs(loader()) == collections.Counter(near)
    sizes = [(f["true_label"].shape, f["neg_label"].shape) for f in loader]
    assert sizes == [((4, 1), (4, 2)), ((2, 1), (2, 2))]
    wide = [pairs(model.load_reader_from_file(*words, window_size=2, seed=s)) for s in range(20)]
    assert all(near <= set(w) <= near | {(0, 2), (2, 0)} for w in wide)
    assert any((0, 2) in w for w in wide) and any((0, 2) not in w for w in wide)  # windows are drawn


def test_a_data_set_gives_the_same_pairs(words):
    model = X.applications.Word2vec(dict_size=6, embedding_size=4, neg_num=2)
    dataset = model.load_dataset_from_file(*words, window_size=1, batch_size=4)
    assert pairs(dataset.feeds()) == pairs(model.load_reader_from_file(*words, window_size=1))


def test_negatives_are_drawn_by_count(words):
    made = SkipGram(words[0], 1, 100, 20000, seed=3)
    share = np.bincount(made._negatives(), minlength=6) / 20000
    weights = np.array([100, 100, 1, 1, 1, 1]) ** 0.75
    np.testing.assert_allclose(share, weights / weights.sum(), atol=0.01)


def test_the_formula(words, rng):
    model = X.applications.Word2vec(dict_size=6, embedding_size=4, neg_num=2)
    exe = static.Executor()
    exe.run(model.startup_prog)
    scope = static.global_scope()
    for name in ("emb", "emb_w", "emb_b"):
        tensor = scope.find_var(name).get_tensor()
        tensor.set(rng.randn(*tensor.numpy().shape).astype("float32"))
    emb, w, b = (scope.find_var(n).get_tensor().numpy() for n in ("emb", "emb_w", "emb_b"))
    feed = {"input_word": [[0], [3]], "true_label": [[1], [4]], "neg_label": [[2, 5], [0, 1]]}
    loss, = exe.run(model.main_prog, feed=feed, fetch_list=[model.loss])

    def logits(word, others):
        return w[others] @ emb[word] + b[others, 0]
    expected = np.mean([np.log1p(np.exp(-logits(i, t))).sum() + np.log1p(np.exp(logits(i, n))).sum()
                        for (i,), t, n in zip(*feed.values())])
    assert float(loss[0]) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(model.vectors_of(exe, [5, 2]), emb[[5, 2]])


def test_it_trains_with_both_trainers(words):
    with open(words[1][0], "w") as file:
        file.write("0 1 2\n3 4\n" * 300)
    for trainer, load, options in ((X.CPUTrainer, "load_reader_from_file", {"start_step": 100}),
                                   (X.CPUDatasetTrainer, "load_dataset_from_file", {})):
        with static.scope_guard(static.Scope()):
            paddle.distributed.fleet.init()
            model = X.applications.Word2vec(dict_size=6, embedding_size=4)
            optimizer = paddle.distributed.fleet.distributed_optimizer(paddle.optimizer.Adam(0.1))
            optimizer.minimize(model.loss)
            train = trainer(calc_line=False)
            train.fit(model, getattr(model, load)(*words, window_size=1, batch_size=50), epoch=1, **options)
            near = model.load_reader_from_file(*words, window_size=1)
            assert train.val(model, near)["loss"] < 3  # 6 log 2 = 4.16 before


def test_mistakes_are_named(tmp_path, words):
    model = X.applications.Word2vec(dict_size=6, embedding_size=4)
    with pytest.raises(native.InvalidArgumentError, match="nce_num is 3; this Word2vec was made with neg_num=5"):
        model.load_reader_from_file(*words, nce_num=3)
    (tmp_path / "bad").write_text("w0 5\nw1\n")
    with pytest.raises(native.CorruptFileError, match="bad:2: expected `word count`, got 'w1'"):
        model.load_dataset_from_file(str(tmp_path / "bad"), words[1])
    for text, why in (("0 hello\n", "'hello' is not the id of a word"), ("0 6\n", "word 6 is not in the dictionary, which has 6")):
        (tmp_path / "part-0").write_text(text)
        with pytest.raises(native.CorruptFileError, match=why):
            list(model.load_reader_from_file(*words))
