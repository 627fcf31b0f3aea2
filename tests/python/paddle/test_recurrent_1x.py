"""Recurrent layers of 1.x against NumPy, one sequence at a time."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers
LENGTHS = [3, 1, 4]
RANDOM = np.random.RandomState(0)
ROWS = RANDOM.randn(8, 6).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def value(name):
    return static.global_scope().find_var(name).get_tensor().numpy()


def run(fetch, feed=None, **options):
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe.run(feed=feed or {"x": fluid.create_lod_tensor(ROWS, [LENGTHS])}, fetch_list=fetch, **options)


def gates_of(count, width, name="gates"):
    """(variable, values of the rows, function that gives the values)."""
    x = static.data("x", [None, 6], "float32", lod_level=1)
    return L.fc(x, count * width, bias_attr=False, param_attr=name)


def per_sequence(rows, step, reverse, *states):
    outs = []
    for part in np.split(rows, np.cumsum(LENGTHS)[:-1]):
        now, out = [np.zeros(s) for s in states], []
        for row in part[::-1] if reverse else part:
            now = step(row, *now)
            out.append(now)
        outs += out[::-1] if reverse else out
    return [np.stack(each) for each in zip(*outs)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("peepholes", [False, True])
def test_dynamic_lstm(reverse, peepholes):
    hidden, cell = L.dynamic_lstm(gates_of(4, 5), 20, param_attr="w", use_peepholes=peepholes, is_reverse=reverse,
                                  bias_attr=fluid.ParamAttr("b", initializer=fluid.initializer.Normal()))
    got = run([hidden, cell, L.sequence_last_step(hidden)])
    w, b = value("w"), value("b")[0]
    assert b.shape == (35 if peepholes else 20,)
    wi, wf, wo = b[20:].reshape(3, 5) if peepholes else np.zeros((3, 5))

    def step(row, h, c):
        g, i, f, o = np.split(row + b[:20] + h @ w, 4)
        new = sigmoid(f + wf * c) * c + sigmoid(i + wi * c) * np.tanh(g)
        return sigmoid(o + wo * new) * np.tanh(new), new
    wanted = per_sequence(ROWS @ value("gates"), step, reverse, 5, 5)
    for ours, theirs in zip(got, wanted):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2], got[0][[2, 3, 7]])


@pytest.mark.parametrize("reverse, peepholes, activation, clips", [
    (False, False, "identity", (None, None)), (True, True, "tanh", (None, None)), (False, True, "identity", (0.1, 0.05))])
def test_dynamic_lstmp(reverse, peepholes, activation, clips):
    first = RANDOM.randn(3, 3).astype("float32")
    hidden, cell = L.dynamic_lstmp(
        gates_of(4, 5), 20, 3, param_attr=fluid.ParamAttr(initializer=None), use_peepholes=peepholes, is_reverse=reverse,
        bias_attr=fluid.ParamAttr(initializer=fluid.initializer.Normal()), proj_activation=activation, name="p",
        h_0=static.data("h", [None, 3]), cell_clip=clips[0], proj_clip=clips[1])
    got = run([hidden, cell, L.sequence_last_step(hidden)],
              {"x": fluid.create_lod_tensor(ROWS, [LENGTHS]), "h": first}, return_numpy=True)
    w, projection, b = value("p.w_0"), value("p.w_1"), value("p.b_0")[0]
    assert w.shape == (3, 20) and projection.shape == (5, 3) and b.shape == (35 if peepholes else 20,)
    wi, wf, wo = b[20:].reshape(3, 5) if peepholes else np.zeros((3, 5))
    begin = iter(first)

    def step(row, r, c):
        if not r.any() and not c.any():
            r = next(begin)
        g, i, f, o = np.split(row + b[:20] + r @ w, 4)
        new = sigmoid(f + wf * c) * c + sigmoid(i + wi * c) * np.tanh(g)
        new = new if clips[0] is None else np.clip(new, -clips[0], clips[0])
        out = (sigmoid(o + wo * new) * np.tanh(new)) @ projection
        out = np.tanh(out) if activation == "tanh" else out
        return (out if clips[1] is None else np.clip(out, -clips[1], clips[1])), new
    for ours, theirs in zip(got, per_sequence(ROWS @ value("gates"), step, reverse, 3, 5)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_dynamic_lstmp_learns():
    hidden, _ = L.dynamic_lstmp(gates_of(4, 5), 20, 3, proj_activation="identity")
    loss = L.mean(L.square(L.sequence_last_step(hidden) - 0.5))
    fluid.optimizer.Adam(0.05).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    losses = [exe.run(feed={"x": fluid.create_lod_tensor(ROWS, [LENGTHS])}, fetch_list=[loss])[0].item() for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("origin", [False, True])
def test_dynamic_gru(reverse, origin):
    out = L.dynamic_gru(gates_of(3, 5), 5, param_attr="w", bias_attr="b", is_reverse=reverse, origin_mode=origin)
    got, = run([out])
    w, b = value("w").reshape(-1), value("b")[0]
    both, own = w[:50].reshape(5, 10), w[50:].reshape(5, 5)

    def step(row, h):
        u, r = np.split(sigmoid(row[:10] + b[:10] + h @ both), 2)
        c = np.tanh(row[10:] + b[10:] + (r * h) @ own)
        return [u * h + (1 - u) * c if origin else (1 - u) * h + u * c]
    np.testing.assert_allclose(got, per_sequence(ROWS @ value("gates"), step, reverse, 5)[0], rtol=1e-4, atol=1e-5)


def test_gru_unit_is_a_step():
    x, h = static.data("x", [None, 15], "float32"), static.data("h", [None, 5], "float32")
    new, reset, gates = L.gru_unit(x, h, 15, param_attr="w", bias_attr=False)
    rows, before = RANDOM.randn(4, 15).astype("float32"), RANDOM.randn(4, 5).astype("float32")
    got = run([new, reset, gates], {"x": rows, "h": before})
    w = value("w").reshape(-1)
    u, r = np.split(sigmoid(rows[:, :10] + before @ w[:50].reshape(5, 10)), 2, 1)
    c = np.tanh(rows[:, 10:] + (r * before) @ w[50:].reshape(5, 5))
    for ours, wanted in zip(got, ((1 - u) * before + u * c, r * before, np.concatenate([u, r, c], 1))):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [4, None])
def test_lstm_over_padded_sequences_is_that_of_2(steps):
    """The same weights in paddle.nn.LSTM of two layers and directions."""
    x = static.data("x", [None, steps, 3], "float32")
    first = static.data("first", [4, None, 5], "float32")
    out, h, c = L.lstm(L.transpose(x, [1, 0, 2]), first, first, 4, 5, 2, is_bidirec=True,
                       default_initializer=fluid.initializer.Normal())
    weight = static.default_main_program().all_parameters()[0]
    values, start = RANDOM.randn(2, 4, 3).astype("float32"), RANDOM.randn(4, 2, 5).astype("float32")
    got = run([L.transpose(out, [1, 0, 2]), h, c], {"x": values, "first": start})
    flat = value(weight.name)
    with static.program_guard(static.Program(), static.Program()):
        other = paddle.nn.LSTM(3, 5, 2, direction="bidirect")
        x = static.data("x", [None, 4, 3], "float32")
        state = static.data("first", [4, None, 5], "float32")
        wanted, (h, c) = other(x, (state, state))
        exe = static.Executor()
        exe.run(static.default_startup_program())
        cells = [cell for layer in other._layers for cell in (layer.cell_fw, layer.cell_bw)]
        parameters = [p for cell in cells for p in (cell.weight_ih, cell.weight_hh)]
        parameters += [p for cell in cells for p in (cell.bias_ih, cell.bias_hh)]
        begin = 0
        for p in parameters:
            p.set_value(flat[begin:begin + p.size].reshape(p.shape))
            begin += p.size
        assert begin == flat.size
        wanted = exe.run(feed={"x": values, "first": start}, fetch_list=[wanted, h, c])
    for ours, theirs in zip(got, wanted):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_learns_which_word_came_first(kind):
    """A stacked net as that of the book's chapter on sentiments."""
    words = static.data("words", [None, 1], "int64", lod_level=1)
    label = static.data("label", [None, 1], "int64")
    emb = L.embedding(words, [10, 8], is_sparse=True)
    if kind == "lstm":
        fc1 = L.fc(emb, 32)
        lstm1, _ = L.dynamic_lstm(fc1, 32)
        fc2 = L.fc([fc1, lstm1], 32)
        top, _ = L.dynamic_lstm(fc2, 32, is_reverse=True)
    else:
        top = L.dynamic_gru(L.fc(emb, 24), 8)
    last = L.sequence_last_step(top) if kind == "gru" else L.sequence_first_step(top)
    loss = L.mean(L.cross_entropy(L.fc(last, 10, act="softmax"), label))
    fluid.optimizer.Adam(0.02).minimize(loss)
    exe, random, losses = fluid.Executor(), np.random.RandomState(0), []
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder([words, label], fluid.CPUPlace())
    for _ in range(200):
        batch = [random.randint(0, 10, random.randint(1, 6)).tolist() for _ in range(32)]
        losses.append(float(exe.run(feed=feeder.feed([(s, [s[0]]) for s in batch]), fetch_list=[loss])[0]))
    assert np.mean(losses[-10:]) < 0.2 * losses[0]


def test_arguments_are_checked():
    x = static.data("x", [None, 6], "float32")
    with pytest.raises(paddle.InvalidArgumentError, match="dynamic_gru: 'x' has no sequences"):
        L.dynamic_gru(x, 2)
    with pytest.raises(paddle.InvalidArgumentError, match="size=6 must be a multiple of 4"):
        L.dynamic_lstm(x, 6)
    lod = static.data("lod", [None, 6], "float32", lod_level=1)
    with pytest.raises(paddle.InvalidArgumentError, match=r"gru.*must be \[rows, 9\]"):
        L.dynamic_gru(lod, 3)
    with pytest.raises(paddle.InvalidArgumentError, match="gate_activation must be sigmoid, tanh, relu or identity"):
        L.dynamic_lstm(L.fc(lod, 8), 8, gate_activation="gelu")


def test_lstm_and_gru_of_contrib_are_their_units_step_by_step():
    values, lengths = RANDOM.randn(2, 4, 3).astype("float32"), np.array([4, 2])
    x, n = static.data("x", [None, None, 3], "float32"), static.data("n", [None], "int64")
    known = static.data("known", [2, 4, 3], "float32")
    contrib, normal = fluid.contrib.layers, fluid.initializer.Normal()
    attrs = {"param_attr": fluid.ParamAttr("w", initializer=normal), "bias_attr": fluid.ParamAttr("b", initializer=normal)}
    out, h, c = contrib.basic_lstm(x, None, None, 5, 1, n, **attrs)
    outs, h2 = contrib.basic_gru(x, None, 5, 1, n, param_attr=fluid.ParamAttr("g", initializer=normal), bias_attr=None)
    lstm = contrib.BasicLSTMUnit("u", 5, "w_0", "b_0")
    gru = contrib.BasicGRUUnit("v", 5, "g_0", None)
    state = (L.zeros([2, 5], "float32"),) * 2
    before = L.zeros([2, 5], "float32")
    steps, turns = [], []
    for word in paddle.unbind(known, 1):
        state = lstm(word, *state)
        before = gru(word, before)
        steps.append(state), turns.append(before)
    feed = {"x": values, "known": values, "n": lengths}
    got = run([out, h, c, outs, h2], feed)
    exe = static.Executor()
    hs, cs, gs = (exe.run(feed=feed, fetch_list=list(each)) for each in (*zip(*steps), turns))
    for i, count in enumerate(lengths):
        np.testing.assert_allclose(got[0][i, :count], [v[i] for v in hs[:count]], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[1][0, i], hs[count - 1][i], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[2][0, i], cs[count - 1][i], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[3][i, :count], [v[i] for v in gs[:count]], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got[4][0, i], gs[count - 1][i], rtol=1e-4, atol=1e-5)
    assert np.abs(got[0][1, 2:]).max() == 0
