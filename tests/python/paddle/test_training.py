"""Small networks learn."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static


def small_images(rng, n=32):
    label = rng.randint(0, 10, (n, 1)).astype("int64")
    patterns = np.random.RandomState(1).randn(10, 1, 28, 28)
    return (patterns[label[:, 0]] + rng.randn(n, 1, 28, 28)).astype("float32"), label


def test_convolutional_network_learns(rng):
    x = static.data("x", [None, 1, 28, 28], "float32")
    y = static.data("y", [None, 1], "int64")
    h = static.nn.conv2d(x, 8, 3, padding=1, act="relu")
    h = paddle.nn.functional.max_pool2d(h, 2)
    h = static.nn.batch_norm(h, act="relu")
    logits = static.nn.fc(h, 10)
    loss = paddle.nn.functional.cross_entropy(logits, y)
    accuracy = paddle.metric.accuracy(logits, y)
    paddle.optimizer.Momentum(0.1, 0.9, weight_decay=paddle.regularizer.L2Decay(1e-4)).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    exe.run(static.default_startup_program())
    losses = []
    for _ in range(30):
        image, label = small_images(rng)
        value, share = exe.run(feed={"x": image, "y": label}, fetch_list=[loss, accuracy.name])
        losses.append("%.5f" % value)
        assert value.shape == (1,) and share.shape == (1,)
    assert float(losses[-1]) < 0.1 < float(losses[0])
    assert [p.name for p in static.default_main_program().all_parameters()] == [
        "conv2d_0.w_0", "conv2d_0.b_0", "batch_norm_0.w_0", "batch_norm_0.b_0", "fc_0.w_0", "fc_0.b_0"]


def test_bag_of_words_on_reviews():
    """Sequences of different lengths: lod_level=1, embedding, sequence_pool."""
    ids = paddle.dataset.imdb.word_dict()
    words = fluid.layers.data(name="words", shape=[1], dtype="int64", lod_level=1)
    label = fluid.layers.data(name="label", shape=[1], dtype="int64")
    embedding = fluid.layers.embedding(input=words, size=[len(ids), 16], is_sparse=True)
    pooled = fluid.layers.sequence_pool(input=embedding, pool_type="average")
    prediction = fluid.layers.fc(input=fluid.layers.tanh(pooled), size=2, act="softmax")
    cost = fluid.layers.mean(fluid.layers.cross_entropy(input=prediction, label=label))
    accuracy = fluid.layers.accuracy(input=prediction, label=label)
    fluid.optimizer.Adagrad(learning_rate=0.2).minimize(cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(feed_list=[words, label], place=fluid.CPUPlace())
    train = paddle.batch(paddle.reader.shuffle(paddle.dataset.imdb.train(ids), 2000), 64)
    for data in train():
        last = exe.run(feed=feeder.feed(data), fetch_list=[cost, accuracy])
    assert float(last[1]) > 0.8


def test_sequence_pool_against_numpy(run, rng):
    x = static.data("x", [None, 3], "float32", lod_level=1)
    pools = ("sum", "average", "sqrt", "max", "first", "last")
    out = [fluid.layers.sequence_pool(x * 2.0, kind) for kind in pools]
    parts = [rng.randn(n, 3).astype("float32") for n in (2, 1, 4)]
    got = run({"x": fluid.create_lod_tensor(np.concatenate(parts), [[2, 1, 4]])}, out)
    want = {"sum": lambda p: p.sum(0), "average": lambda p: p.mean(0), "sqrt": lambda p: p.sum(0) / np.sqrt(len(p)),
            "max": lambda p: p.max(0), "first": lambda p: p[0], "last": lambda p: p[-1]}
    for kind, value in zip(pools, got):
        np.testing.assert_allclose(value, np.stack([want[kind](2 * p) for p in parts]), rtol=1e-5, atol=1e-6)
    rows, = run({"x": parts[0]}, [out[0]])  # rows of an array are sequences of one
    np.testing.assert_allclose(rows, 2 * parts[0], rtol=1e-6)


@pytest.mark.parametrize("seed", range(7))
def test_the_made_up_prices_are_as_easy_as_the_real_ones(seed):
    """Linear regression as in the original's first chapter: a batch with a squared error below 10 within 100 passes."""
    import random
    random.seed(seed)
    static.default_startup_program().random_seed = seed + 1
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    cost = fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y))
    fluid.optimizer.SGD(learning_rate=0.001).minimize(cost)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder(place=fluid.CPUPlace(), feed_list=[x, y])
    train = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=20)
    for _ in range(100):
        for data in train():
            if float(exe.run(feed=feeder.feed(data), fetch_list=[cost])[0]) < 10.0:
                return
    pytest.fail("the loss of no batch fell below 10")


def test_pictures_of_any_size_are_trained():
    """Height and width are known only when a batch is fed; the updates are those of a program that knows them."""
    def network(size):
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x, y = static.data("x", [None, 3, size, size]), static.data("y", [None, 1], "int64")
            h = static.nn.conv2d(x, 4, 3, stride=2, padding=1, act="relu")
            h = fluid.layers.pool2d(h, 3, "max", 2, 1)
            h = fluid.layers.pool2d(h, pool_type="avg", global_pooling=True)
            loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(h, 3), y))
            paddle.optimizer.SGD(0.5).minimize(loss)
        return main, startup, loss
    random, losses = np.random.RandomState(0), {}
    batches = [(random.rand(4, 3, 16, 16).astype("float32"), random.randint(0, 3, (4, 1))) for _ in range(4)]
    for size in (16, None):
        main, startup, loss = network(size)
        startup.random_seed = 5
        exe = static.Executor()
        with static.scope_guard(static.Scope()):
            exe.run(startup)
            losses[size] = [float(exe.run(main, {"x": x, "y": y}, [loss])[0]) for x, y in batches]
            if size is None:
                exe.run(main, {"x": random.rand(2, 3, 22, 30).astype("float32"), "y": np.zeros((2, 1), "int64")}, [loss])
    np.testing.assert_allclose(losses[None], losses[16], rtol=1e-5)


def test_a_gradient_clip_of_parameter_attributes(run):
    """In 1.x a ParamAttr says how the gradient of its parameter is clipped."""
    clip = fluid.clip.GradientClipByValue(0.01)
    x = static.data("x", [None, 3], "float32")
    h = fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr("w", fluid.initializer.Constant(1.0), gradient_clip=clip), bias_attr=False)
    out = fluid.layers.fc(h, 1, param_attr=fluid.ParamAttr("v", fluid.initializer.Constant(1.0)), bias_attr=False)
    loss = fluid.layers.reduce_sum(out)
    assert static.default_main_program().global_block().var("w").gradient_clip_attr is clip
    fluid.optimizer.SGD(1.0).minimize(loss)
    run({"x": np.ones((2, 3), "float32")}, [loss])
    scope = static.global_scope()
    np.testing.assert_allclose(np.array(scope.find_var("w").get_tensor()), np.full((3, 2), 0.99), rtol=1e-6)
    np.testing.assert_allclose(np.array(scope.find_var("v").get_tensor()), np.full((2, 1), -5.0), rtol=1e-6)


def test_different_gradient_clips_are_refused():
    x = static.data("x", [None, 3], "float32")
    for limit in (1.0, 2.0):
        x = fluid.layers.fc(x, 3, param_attr=fluid.ParamAttr(gradient_clip=fluid.clip.GradientClipByNorm(limit)))
    with pytest.raises(NotImplementedError, match="different gradient_clip"):
        fluid.optimizer.SGD(1.0).minimize(paddle.mean(x))
    with pytest.raises(TypeError, match="GradientClipBy"):
        fluid.ParamAttr(gradient_clip=1.0)


def test_an_optimizer_around_another_names_it():
    x = static.data("x", [None, 3], "float32")
    inner = fluid.optimizer.Momentum(0.25, 0.9)
    outer = fluid.optimizer.RecomputeOptimizer(inner)
    h = fluid.layers.fc(x, 3)
    outer._set_checkpoints([h])
    outer.minimize(paddle.mean(fluid.layers.fc(h, 3)))
    assert outer._optimizer is inner and outer._optimizer._global_learning_rate().name.startswith("learning_rate")
