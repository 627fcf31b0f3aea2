"""WideDeep and DeepFM beside MultiSlotCTR: formulas, gradients by training, files."""
import numpy as np
import pytest

import fleetx as X
import paddle
from paddle import static
from paddle._native import native

MODELS = [X.applications.MultiSlotCTR, X.applications.WideDeep, X.applications.DeepFM]
SMALL = dict(sparse_feature_dim=50, embedding_size=3, hidden=[4], dense_feature_dim=2, slot_num=3)


def feed(rng, count=8):
    ids = {f"C{i}": rng.randint(0, 50, (count, 1)) for i in (1, 2, 3)}
    return {"dense_input": rng.rand(count, 2).astype("float32"), **ids, "label": rng.randint(0, 2, (count, 1))}


def value(name):
    return static.global_scope().find_var(name).get_tensor().numpy()


def parameter(model, part, index=0):
    return value([p for p in model.parameter_list() if part in p][index])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_learns_its_batch(kind, rng):
    model = kind(**SMALL)
    paddle.optimizer.Adam(0.05).minimize(model.loss)
    exe = static.Executor()
    exe.run(model.startup_prog)
    batch = feed(rng)
    losses = [float(exe.run(model.main_prog, feed=batch, fetch_list=[model.loss])[0]) for _ in range(80)]
    assert losses[0] == pytest.approx(np.log(2), abs=0.3) and losses[-1] < 0.05
    assert len(model.checkpoints) == 1 and list(model.target) == ["auc"] and len(model.auc_states) == 2


def test_the_formula_of_wide_deep(rng):
    model = X.applications.WideDeep(**SMALL)
    exe = static.Executor()
    exe.run(model.startup_prog)
    batch = feed(rng)
    predict, loss = exe.run(model.main_prog, feed=batch, fetch_list=[model.predict, model.loss])
    rows = [value("SparseFeatFactors")[batch[f"C{i}"][:, 0]] for i in (1, 2, 3)]
    w = [parameter(model, "fc", i) for i in range(6)]
    wide = batch["dense_input"] @ w[0] + w[1]
    deep = np.maximum(np.concatenate([*rows, batch["dense_input"]], 1) @ w[2] + w[3], 0) @ w[4] + w[5]
    expected = sigmoid(wide + deep)
    np.testing.assert_allclose(predict, expected, rtol=1e-5)
    y = batch["label"]
    assert float(loss[0]) == pytest.approx(-np.mean(np.log(np.where(y, expected, 1 - expected))), rel=1e-5)


def test_the_formula_of_deepfm(rng):
    model = X.applications.DeepFM(**SMALL)
    exe = static.Executor()
    exe.run(model.startup_prog)
    static.global_scope().find_var("fm_weights").get_tensor().set(rng.rand(50, 1).astype("float32"))
    batch = feed(rng)
    predict, = exe.run(model.main_prog, feed=batch, fetch_list=[model.predict])
    ids = [batch[f"C{i}"][:, 0] for i in (1, 2, 3)]
    dense, w = batch["dense_input"], [parameter(model, "fc", i) for i in range(6)]
    vectors = [value("fm_factors")[i] for i in ids]
    single = sum(value("fm_weights")[i] for i in ids) + dense @ w[0] + w[1]
    everything = vectors + [dense[:, k:k + 1] * value("fm_dense_factors")[k] for k in range(2)]
    pairs = sum(np.sum(a * b, 1, keepdims=True) for i, a in enumerate(everything) for b in everything[:i])
    deep = np.maximum(np.concatenate([*vectors, dense], 1) @ w[2] + w[3], 0) @ w[4] + w[5]
    np.testing.assert_allclose(predict, sigmoid(single + pairs + deep), rtol=1e-5)


def test_parameters_as_a_file(tmp_path, rng):
    model = X.applications.WideDeep(**SMALL)
    exe = static.Executor()
    exe.run(model.startup_prog)
    batch = feed(rng)
    before, = exe.run(model.main_prog, feed=batch, fetch_list=[model.predict])
    model.save_params(tmp_path / "model")
    with static.scope_guard(static.Scope()):
        exe.run(model.startup_prog)
        static.global_scope().find_var("SparseFeatFactors").get_tensor().set(np.ones((50, 3), "float32"))
        model.load_params(tmp_path / "model")
        assert exe.run(model.main_prog, feed=batch, fetch_list=[model.predict])[0].tolist() == before.tolist()


def test_sizes_are_checked():
    for name in ("sparse_feature_dim", "embedding_size", "dense_feature_dim", "slot_num"):
        with pytest.raises(native.InvalidArgumentError, match=f"DeepFM: {name} must be above 0, got 0"):
            X.applications.DeepFM(**{**SMALL, name: 0})
    model = X.applications.DeepFM(**SMALL)  # its slots are not those of Criteo
    with pytest.raises(native.InvalidArgumentError, match="criteo: the slots are"):
        list(model.load_criteo_from_file(__file__))
