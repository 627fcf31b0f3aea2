"""Steps that a script writes itself."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers
X = np.random.RandomState(0).randn(4, 2, 3).astype("float32")


def run(fetch, feed=None):
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe.run(feed=feed or {"x": X}, fetch_list=fetch)


def test_a_running_sum_and_its_square():
    x = static.data("x", [4, None, 3], "float32")
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 3], batch_ref=word, init_value=1.0)
        now = L.elementwise_add(word, before)
        rnn.update_memory(before, now)
        rnn.step_output(now)
        rnn.step_output(L.square(now))
    total, squares = rnn()
    got = run([total, squares])
    np.testing.assert_allclose(got[0], X.cumsum(0) + 1, rtol=1e-5)
    np.testing.assert_allclose(got[1], (X.cumsum(0) + 1) ** 2, rtol=1e-5)


def test_memories_change_at_once():
    """Fibonacci: each of two memories becomes what the other was."""
    x, one = static.data("x", [5, None, 1], "float32"), static.data("one", [None, 1], "float32")
    rnn = static.nn.StaticRNN(name="fibonacci")
    with rnn.step():
        word = rnn.step_input(x)
        a, b = rnn.memory(init=one), rnn.memory(init=one)
        rnn.update_memory(a, b)
        rnn.update_memory(b, a + b + word * 0.0)
        rnn.output(a)
    got, = run([rnn()], {"x": np.zeros((5, 1, 1), "float32"), "one": np.ones((1, 1), "float32")})
    assert got.ravel().tolist() == [1, 1, 2, 3, 5]


def test_it_learns_with_shared_weights():
    from paddle.fluid.layers.control_flow import StaticRNN
    x, y = static.data("x", [None, 5, 2], "float32"), static.data("y", [None, 1], "float32")
    rnn = StaticRNN()
    with rnn.step():
        word = rnn.step_input(L.transpose(x, [1, 0, 2]))
        before = rnn.memory(shape=[-1, 8], batch_ref=word)
        now = L.fc([word, before], 8, act="tanh")
        rnn.update_memory(before, now)
        rnn.output(L.dropout(now, 0.0))
    out = L.slice(rnn(), [0], [4], [5])
    loss = L.mean(L.square(L.fc(L.reshape(out, [-1, 8]), 1) - y))
    assert len(static.default_main_program().all_parameters()) == 5
    fluid.optimizer.Adam(0.01).minimize(loss)
    exe, random, losses = fluid.Executor(), np.random.RandomState(0), []
    exe.run(fluid.default_startup_program())
    for _ in range(200):
        batch = random.randn(32, 5, 2).astype("float32")
        feed = {"x": batch, "y": batch[:, 0, :1] + batch[:, 4, :1]}
        losses.append(float(exe.run(feed=feed, fetch_list=[loss])[0]))
    assert np.mean(losses[-10:]) < 0.2 * losses[0]


def test_what_is_missing_is_named():
    with pytest.raises(paddle.InvalidArgumentError, match="an update_memory for each memory, and an output"):
        rnn = L.StaticRNN()
        with rnn.step():
            word = rnn.step_input(static.data("y", [4, None, 3], "float32"))
            rnn.memory(shape=[-1, 3], batch_ref=word)
    with pytest.raises(paddle.InvalidArgumentError, match="inside of the block of its step"):
        L.StaticRNN().step_input(static.data("z", [4, None, 3], "float32"))
