"""Recurrent layers against NumPy."""
import numpy as np
import pytest

import paddle
import paddle.nn as nn
from paddle import static

X = np.random.RandomState(0).randn(2, 4, 3).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def weights_of(cell):
    scope = static.global_scope()
    return [scope.find_var(p.name).get_tensor().numpy() for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh)]


def lstm(x, cell, steps):
    w, u, b, d = weights_of(cell)
    h = c = np.zeros((len(x), u.shape[1]))
    out = {}
    for t in steps:
        i, f, g, o = np.split(x[:, t] @ w.T + b + h @ u.T + d, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out[t] = h
    return np.stack([out[t] for t in sorted(out)], 1), h, c


def gru(x, cell, steps):
    w, u, b, d = weights_of(cell)
    h, out = np.zeros((len(x), u.shape[1])), {}
    for t in steps:
        xr, xz, xc = np.split(x[:, t] @ w.T + b, 3, -1)
        hr, hz, hc = np.split(h @ u.T + d, 3, -1)
        z, c = sigmoid(xz + hz), np.tanh(xc + sigmoid(xr + hr) * hc)
        h = z * h + (1 - z) * c
        out[t] = h
    return np.stack([out[t] for t in sorted(out)], 1), h


def test_two_layers_of_lstm(run):
    layer = nn.LSTM(3, 5, num_layers=2)
    out, (h, c) = layer(static.data("x", [None, 4, 3], "float32"))
    got = run({"x": X}, [out, h, c])
    first, h0, c0 = lstm(X, layer._layers[0].cell, range(4))
    second, h1, c1 = lstm(first, layer._layers[1].cell, range(4))
    for ours, wanted in zip(got, (second, np.stack([h0, h1]), np.stack([c0, c1]))):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)
    assert len(layer.parameters()) == 8


def test_gru_in_both_directions(run):
    layer = nn.GRU(3, 5, direction="bidirect")
    out, h = layer(static.data("x", [None, 4, 3], "float32"))
    got = run({"x": X}, [out, h])
    forth, end = gru(X, layer._layers[0].cell_fw, range(4))
    back, begin = gru(X, layer._layers[0].cell_bw, range(3, -1, -1))
    np.testing.assert_allclose(got[0], np.concatenate([forth, back], -1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], np.stack([end, begin]), rtol=1e-4, atol=1e-5)


def test_steps_beyond_the_end_of_a_sequence_do_not_count(run):
    layer = nn.GRU(3, 5)
    lengths = static.data("n", [None], "int64")
    out, h = layer(static.data("x", [None, 4, 3], "float32"), None, lengths)
    got = run({"x": X, "n": np.array([4, 2])}, [out, h])
    whole, last = gru(X, layer._layers[0].cell, range(4))
    half, middle = gru(X, layer._layers[0].cell, range(2))
    np.testing.assert_allclose(got[0][1], np.concatenate([half[1], np.zeros((2, 5))]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1][0], [last[0], middle[1]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("time_major", [False, True])
def test_lstm_of_unknown_steps_and_lengths(run, time_major):
    layer = nn.LSTM(3, 5, direction="bidirect", time_major=time_major)
    lengths = static.data("n", [None], "int64")
    out, (h, c) = layer(static.data("x", [None, None, 3], "float32"), None, lengths)
    got = run({"x": X.swapaxes(0, 1) if time_major else X, "n": np.array([4, 2])}, [out, h, c])
    cells = layer._layers[0].cell_fw, layer._layers[0].cell_bw
    for i, n in enumerate((4, 2)):
        forth, end, end_c = lstm(X[i:i + 1], cells[0], range(n))
        back, begin, begin_c = lstm(X[i:i + 1], cells[1], range(n - 1, -1, -1))
        wanted = np.concatenate([np.concatenate([forth, back], -1)[0], np.zeros((4 - n, 10))])
        np.testing.assert_allclose(got[0][:, i] if time_major else got[0][i], wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[1][:, i], np.concatenate([end, begin]), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[2][:, i], np.concatenate([end_c, begin_c]), rtol=1e-4, atol=1e-5)


def test_a_cell_of_ones_own(run):
    class Sum(nn.RNNCellBase):
        state_shape = (3,)

        def forward(self, inputs, states):
            total = inputs + states
            return total, total
    out, last = nn.RNN(Sum())(static.data("x", [None, 4, 3], "float32"))
    got = run({"x": X}, [out, last])
    np.testing.assert_allclose(got[0], X.cumsum(1), rtol=1e-5)
    np.testing.assert_allclose(got[1], X.sum(1), rtol=1e-5)


def test_learns_to_remember():
    x, y = static.data("x", [None, 6, 1], "float32"), static.data("y", [None, 1], "float32")
    out, (h, c) = nn.LSTM(1, 8)(x)
    loss = paddle.mean(paddle.square(static.nn.fc(h[0], 1) - y))
    paddle.optimizer.Adam(0.02).minimize(loss)
    exe, rng = static.Executor(), np.random.RandomState(0)
    exe.run(static.default_startup_program())
    losses = []
    for _ in range(300):
        batch = rng.randn(16, 6, 1).astype("float32")
        losses.append(float(exe.run(feed={"x": batch, "y": batch[:, 0]}, fetch_list=[loss])[0]))
    assert np.mean(losses[-20:]) < 0.2 * np.mean(losses[:20])


@pytest.mark.parametrize("reverse", [False, True])
def test_gru_of_unknown_steps_is_that_of_known_ones(reverse):
    lengths, exe = static.data("n", [None], "int64"), static.Executor()
    layer = nn.RNN(nn.GRUCell(3, 5), is_reverse=reverse)
    fetch = []
    for steps in (4, None):
        x = static.data(f"x{steps}", [None, steps, 3], "float32")
        out, h = layer(x, None, lengths)
        fetch += [out, h]
    exe.run(static.default_startup_program())
    got = exe.run(feed={"x4": X, "xNone": X, "n": np.array([4, 2])}, fetch_list=fetch)
    np.testing.assert_allclose(got[0], got[2], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[1], got[3], rtol=1e-5, atol=1e-6)
    assert exe.run(feed={"x4": X, "xNone": X[:, :2], "n": np.array([2, 2])}, fetch_list=fetch[2:])[0].shape == (2, 2, 5)


def test_directions_are_checked():
    with pytest.raises(ValueError, match="direction must be"):
        nn.LSTM(3, 5, direction="sideways")
