"""What is drawn: values for a batch of any size, samples, and losses over some of many classes."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers


@pytest.fixture
def x():
    return static.data("x", [None, 6], "float32")


def run(fetch, rows=2000, **more):
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe.run(feed={"x": np.zeros((rows, 6), "float32"), **more}, fetch_list=fetch)


def test_values_for_a_batch(x):
    fetch = [L.uniform_random_batch_size_like(x, [-1, 3], min=-1.0, max=3.0), paddle.rand([paddle.shape(x)[0], 2]),
             L.gaussian_random_batch_size_like(x, [-1, 4], mean=1.0, std=2.0), paddle.randint(2, 5, [paddle.shape(x)[0]]),
             paddle.uniform(paddle.shape(x), min=0.0, max=1.0), paddle.bernoulli(paddle.full_like(x, 0.25))]
    got = run(fetch)
    assert [g.shape for g in got] == [(2000, 3), (2000, 2), (2000, 4), (2000,), (2000, 6), (2000, 6)]
    assert abs(got[0].mean() - 1) < 0.1 and got[0].min() >= -1 and got[0].max() < 3
    assert abs(got[1].mean() - 0.5) < 0.03 and abs(np.corrcoef(got[1].T)[0, 1]) < 0.1
    assert abs(got[2].mean() - 1) < 0.1 and abs(got[2].std() - 2) < 0.1 and abs(((got[2] - 1) ** 4).mean() / 16 - 3) < 0.4
    assert sorted(set(got[3].tolist())) == [2, 3, 4] and got[3].dtype == np.int64
    assert abs(got[5].mean() - 0.25) < 0.02
    again = run(fetch[:1])[0]
    assert (again == got[0]).all()  # another run of the script, the same step


def test_shapes_with_several_unknown_lengths():
    u = static.data("u", [None, None, 3], "float32")
    ones = paddle.full([paddle.shape(u)[0], 2, paddle.shape(u)[1]], 4, "int64")
    tiled = paddle.tile(paddle.assign(np.array([[[1.0], [2.0]]], "float32")), [paddle.shape(u)[0], 1, 2])
    got = static.Executor().run(feed={"u": np.zeros((5, 7, 3), "float32")}, fetch_list=[ones, tiled])
    assert got[0].shape == (5, 2, 7) and (got[0] == 4).all()
    assert got[1].shape == (5, 2, 2) and got[1][4].tolist() == [[1, 1], [2, 2]]
    with pytest.raises(NotImplementedError, match="its dimension must have length 1"):
        paddle.tile(paddle.ones([2, 3]), [paddle.shape(u)[0], 1])


def test_shuffled(x):
    count = static.data("count", [None, 1], "int64")
    got = run([fluid.contrib.layers.shuffle_batch(count), fluid.contrib.layers.shuffle_batch(count), paddle.randperm(50)],
              count=np.arange(100)[:, None], rows=1)
    assert sorted(got[0].ravel()) == sorted(got[1].ravel()) == list(range(100))
    assert (got[0] != got[1]).mean() > 0.8 and sorted(got[2].tolist()) == list(range(50))


@pytest.mark.parametrize("replacement", [False, True])
def test_multinomial(x, replacement):
    shares = np.array([0.0, 1, 2, 5], "float32")
    one = paddle.multinomial(paddle.tile(paddle.assign(shares[None]), [paddle.shape(x)[0], 1]), 2, replacement)
    flat = paddle.multinomial(paddle.assign(shares), 3, replacement)
    got, three = run([one, flat])
    assert got.shape == (2000, 2) and three.shape == (3,) and got.min() >= 1
    np.testing.assert_allclose(np.bincount(got[:, 0], minlength=4) / 2000, shares / 8, atol=0.04)
    assert ((got[:, 0] == got[:, 1]).sum() > 0) == replacement


def test_sampling_id(x):
    probabilities = static.data("p", [None, 3], "float32")
    got, = run([L.sampling_id(probabilities, dtype="int64")], p=np.tile(np.array([[0.2, 0, 0.8]], "float32"), (2000, 1)))
    np.testing.assert_allclose(np.bincount(got, minlength=3) / 2000, [0.2, 0, 0.8], atol=0.04)


@pytest.mark.parametrize("loss", ["nce", "nce_log", "sampled_softmax"])
def test_losses_over_some_classes_learn_all(loss):
    """Class = word: what was learnt from a few drawn classes ranks all of them."""
    word = static.data("word", [None], "int64")
    emb = fluid.embedding(word, [50, 16])
    weight, bias = fluid.ParamAttr("w"), fluid.ParamAttr("b")
    logits = L.fc(emb, 50, param_attr="fc") if loss == "sampled_softmax" else None
    if loss == "sampled_softmax":
        costs = L.sampled_softmax_with_cross_entropy(logits, L.unsqueeze(word, [1]), 8)
    else:
        costs = L.nce(emb, L.unsqueeze(word, [1]), 50, None, weight, bias, 8, is_sparse=True,
                      sampler="uniform" if loss == "nce" else "log_uniform")
        table = [v for v in static.default_main_program().all_parameters() if v.name == "w"][0]
        logits = L.matmul(emb, table, transpose_y=True)
    cost = L.mean(costs)
    fluid.optimizer.Adam(0.02).minimize(cost)
    exe, random = static.Executor(), np.random.RandomState(0)
    exe.run(static.default_startup_program())
    first = None
    for _ in range(200):
        value, = exe.run(feed={"word": random.randint(0, 50, 64)}, fetch_list=[cost])
        first = first or float(value)
    best, = exe.run(feed={"word": np.arange(50)}, fetch_list=[L.argmax(logits, -1)])
    assert float(value) < 0.5 * first and (best == np.arange(50)).mean() > 0.9
    assert costs.shape == (-1, 1)


def test_nce_by_its_definition(x):
    label = static.data("label", [None, 1], "int64")
    cost = L.nce(x, label, 1, num_neg_samples=3, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5)))
    got, = run([cost], rows=1, x=np.full((1, 6), 0.1, "float32"), label=np.zeros((1, 1), "int64"))
    share = 1 / (1 + np.exp(-0.3))  # the only class is drawn three times
    np.testing.assert_allclose(got[0, 0], -np.log(share / (share + 3)) - 3 * np.log(3 / (share + 3)), rtol=1e-5)


def test_teacher_student_sigmoid_loss():
    x, label = (static.data(name, [None, 1], "float32") for name in ("x", "label"))
    loss = L.teacher_student_sigmoid_loss(x, label)
    labels = np.array([[-2.0], [-1.0], [0.3], [1.3]], "float32")
    got, = static.Executor().run(feed={"x": np.full((4, 1), 0.7, "float32"), "label": labels}, fetch_list=[loss])
    soft = np.log(1 + np.exp(0.7))
    np.testing.assert_allclose(got.ravel(), [soft, soft - 0.7, 2 * soft - 0.21, 2 * soft - 0.7 - 0.21], rtol=1e-5)


def test_no_other_device_is_compiled_in():
    assert not paddle.is_compiled_with_custom_device("npu") and not paddle.is_compiled_with_cinn()
