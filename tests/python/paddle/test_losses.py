"""Losses and metrics against NumPy."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
import paddle.nn.functional as F
from paddle import static

X = np.random.RandomState(0).randn(6, 4).astype("float32")
LABEL = np.array([[0], [3], [1], [1], [2], [0]], "int64")
SOFT = np.random.RandomState(1).dirichlet(np.ones(4), 6).astype("float32")
P = 1 / (1 + np.exp(-X))
BITS = np.random.RandomState(2).randint(0, 2, X.shape).astype("float32")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


NLL = -np.log(softmax(X))[np.arange(6), LABEL[:, 0]]
WEIGHT = np.array([0.5, 1.0, 2.0, 3.0], "float32")
BCE = -(BITS * np.log(P) + (1 - BITS) * np.log(1 - P))
D = X - SOFT

CASES = {
    "cross_entropy of logits": (lambda x, y, s, b: F.cross_entropy(x, y), NLL.mean().reshape(1)),
    "cross_entropy, labels [N]": (lambda x, y, s, b: F.cross_entropy(x, paddle.squeeze(y, -1)), NLL.mean().reshape(1)),
    "cross_entropy none": (lambda x, y, s, b: F.cross_entropy(x, y, reduction="none"), NLL[:, None]),
    "cross_entropy sum": (lambda x, y, s, b: F.cross_entropy(x, y, reduction="sum"), NLL.sum().reshape(1)),
    "cross_entropy soft": (lambda x, y, s, b: F.cross_entropy(x, s, soft_label=True),
                           -(SOFT * np.log(softmax(X))).sum(1).mean().reshape(1)),
    "cross_entropy ignores": (lambda x, y, s, b: F.cross_entropy(x, y, ignore_index=1), NLL[LABEL[:, 0] != 1].mean().reshape(1)),
    "cross_entropy weighs": (lambda x, y, s, b: F.cross_entropy(x, y, weight=paddle.assign(WEIGHT)),
                             ((NLL * WEIGHT[LABEL[:, 0]]).sum() / WEIGHT[LABEL[:, 0]].sum()).reshape(1)),
    "cross_entropy of probabilities": (lambda x, y, s, b: F.cross_entropy(F.softmax(x), y, use_softmax=False),
                                       NLL.mean().reshape(1)),
    "fluid cross_entropy takes probabilities": (lambda x, y, s, b: fluid.layers.cross_entropy(fluid.layers.softmax(x), y),
                                                NLL[:, None]),
    "softmax_with_cross_entropy": (lambda x, y, s, b: fluid.layers.softmax_with_cross_entropy(x, y), NLL[:, None]),
    "nll_loss": (lambda x, y, s, b: F.nll_loss(F.log_softmax(x), paddle.squeeze(y, -1)), NLL.mean().reshape(1)),
    "mse_loss": (lambda x, y, s, b: F.mse_loss(x, s), (D ** 2).mean().reshape(1)),
    "mse_loss sum": (lambda x, y, s, b: F.mse_loss(x, s, reduction="sum"), (D ** 2).sum().reshape(1)),
    "l1_loss": (lambda x, y, s, b: F.l1_loss(x, s), np.abs(D).mean().reshape(1)),
    "smooth_l1_loss": (lambda x, y, s, b: F.smooth_l1_loss(x, s),
                       np.where(np.abs(D) < 1, D ** 2 / 2, np.abs(D) - 0.5).mean().reshape(1)),
    "square_error_cost": (lambda x, y, s, b: fluid.layers.square_error_cost(x, s), D ** 2),
    "bce": (lambda x, y, s, b: F.binary_cross_entropy(F.sigmoid(x), b), BCE.mean().reshape(1)),
    "bce with logits": (lambda x, y, s, b: F.binary_cross_entropy_with_logits(x, b), BCE.mean().reshape(1)),
    "sigmoid_cross_entropy": (lambda x, y, s, b: fluid.layers.sigmoid_cross_entropy_with_logits(x, b), BCE),
    "log_loss": (lambda x, y, s, b: F.log_loss(F.sigmoid(x), b),
                 -(BITS * np.log(P + 1e-4) + (1 - BITS) * np.log(1 - P + 1e-4))),
    "kl_div": (lambda x, y, s, b: F.kl_div(F.log_softmax(x), s), (SOFT * (np.log(SOFT) - np.log(softmax(X)))).mean().reshape(1)),
    "accuracy": (lambda x, y, s, b: paddle.metric.accuracy(x, y), (X.argmax(1) == LABEL[:, 0]).mean().reshape(1)),
    "accuracy of two": (lambda x, y, s, b: static.accuracy(x, y, k=2),
                        (np.argsort(-X, 1)[:, :2] == LABEL).any(1).mean().reshape(1)),
    "accuracy of one column": (lambda x, y, s, b: static.accuracy(x[:, 0:1], y), (LABEL == 0).mean().reshape(1)),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(name, run):
    build, want = CASES[name]
    x, y = static.data("x", [None, 4], "float32"), static.data("y", [None, 1], "int64")
    s, b = static.data("s", [None, 4], "float32"), static.data("b", [None, 4], "float32")
    out = build(x, y, s, b)
    feed = {"x": X, "y": LABEL, "s": SOFT, "b": BITS}
    got, = run(feed, [out])
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_losses_have_gradients(run):
    x, y = static.data("x", [None, 4], "float32"), static.data("y", [None, 1], "int64")
    h = static.nn.fc(x, 4, bias_attr=False, weight_attr=paddle.nn.initializer.Assign(np.eye(4)))
    loss = F.cross_entropy(h, y, weight=paddle.assign(WEIGHT), ignore_index=1)
    grads = static.append_backward(loss)
    got, = run({"x": X, "y": LABEL}, [grads[0][1]])
    keep = (LABEL[:, 0] != 1) * WEIGHT[LABEL[:, 0]]
    want = X.T @ ((softmax(X) - np.eye(4)[LABEL[:, 0]]) * keep[:, None] / keep.sum())
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_auc_of_all_and_of_the_last_batches(rng):
    p = static.data("p", [None, 2], "float32")
    y = static.data("y", [None, 1], "int64")
    whole, batch, states = static.auc(p, y, num_thresholds=4095, slide_steps=1)
    assert [v.name for v in states] == [f"_generated_var_{i}" for i in range(4)]
    exe = static.Executor()
    exe.run(static.default_startup_program())
    seen, labels = [], []
    for _ in range(3):
        label = rng.randint(0, 2, (50, 1))
        score = (rng.rand(50, 1) + label * 0.5).clip(0, 1.49) / 1.5
        got = exe.run(feed={"p": np.hstack([1 - score, score]).astype("float32"), "y": label}, fetch_list=[whole, batch])
        seen.append(score), labels.append(label)

        def area(s, l):
            pos, neg = s[l == 1], s[l == 0]
            return ((pos[:, None] > neg[None]).mean() + 0.5 * (pos[:, None] == neg[None]).mean())
        assert abs(float(got[0]) - area(np.concatenate(seen), np.concatenate(labels))) < 2e-3
        assert abs(float(got[1]) - area(score, label)) < 2e-3


def test_losses_of_pairs(run, rng):
    label, left, right = [static.data(n, [None, 1], "float32") for n in ("label", "left", "right")]
    a, b = rng.randn(2, 5, 1).astype("float32")
    sides = np.array([[1], [0], [1], [0], [1]], "float32")
    both = [fluid.layers.rank_loss(label, left, right), fluid.layers.margin_rank_loss(label, left, right, 0.3)]
    got = run({"label": sides, "left": a, "right": b}, both)
    np.testing.assert_allclose(got[0], np.log1p(np.exp(a - b)) - sides * (a - b), rtol=1e-5)
    np.testing.assert_allclose(got[1], np.maximum(0, 0.3 - sides * (a - b)), rtol=1e-5)


def test_losses_of_1_x_have_the_shape_of_the_label(run):
    import paddle.fluid as fluid
    shares = np.random.RandomState(0).dirichlet(np.ones(4), (2, 3)).astype("float32")
    labels = np.array([[0, 1, 2], [3, 0, 1]])
    p = static.data("p", [None, 3, 4], "float32")
    y, column = static.data("y", [None, 3], "int64"), static.data("column", [None, 3, 1], "int64")
    got = run({"p": shares, "y": labels, "column": labels[..., None]},
              [fluid.layers.cross_entropy(p, y), fluid.layers.cross_entropy(p, column)])
    wanted = -np.log(np.take_along_axis(shares, labels[..., None], -1))
    np.testing.assert_allclose(got[0], wanted[..., 0], rtol=1e-5)
    np.testing.assert_allclose(got[1], wanted, rtol=1e-5)
