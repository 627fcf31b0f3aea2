"""Loops over a number of steps that each batch brings along."""
import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers
LENGTHS = [3, 1, 4]
RANDOM = np.random.RandomState(0)
ROWS = RANDOM.randn(8, 2).astype("float32")


def test_a_running_sum_over_sequences():
    x = static.data("x", [None, 2], "float32", lod_level=1)
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[2], value=1.0)
        now = L.elementwise_add(word, before)
        rnn.update_memory(before, now)
        rnn.output(now, L.scale(now, 2.0))
    total, double = rnn()
    last = L.sequence_last_step(total)
    exe = static.Executor()
    for lengths in (LENGTHS, [8], [1] * 8, [2, 6], LENGTHS):
        got = exe.run(feed={"x": fluid.create_lod_tensor(ROWS, [lengths])}, fetch_list=[total, double, last], return_numpy=False)
        wanted = [p.cumsum(0) + 1 for p in np.split(ROWS, np.cumsum(lengths)[:-1])]
        np.testing.assert_allclose(np.array(got[0]), np.concatenate(wanted), rtol=1e-5)
        np.testing.assert_allclose(np.array(got[1]), 2 * np.concatenate(wanted), rtol=1e-5)
        np.testing.assert_allclose(np.array(got[2]), [w[-1] for w in wanted], rtol=1e-5)
        assert got[0].recursive_sequence_lengths() == [lengths]


def test_a_long_sequence_shares_its_program_with_others():
    x = static.data("x", [None, 1], "float32", lod_level=1)
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[1])
        now = word + before
        rnn.update_memory(before, now)
        rnn.output(now)
    out, exe = rnn(), static.Executor()
    for n in (9, 11, 16):
        got, = exe.run(feed={"x": fluid.create_lod_tensor(np.ones((n + 1, 1), "float32"), [[n, 1]])}, fetch_list=[out])
        assert got.ravel().tolist() == [*range(1, n + 1), 1]
    assert len(static.default_main_program().family._made) == 1


def gru(inputs, size):
    """The recurrent part of dynamic_gru, by a block of the script."""
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(inputs)
        before = rnn.memory(shape=[size])
        new, _, _ = L.gru_unit(word, before, 3 * size, param_attr="w", bias_attr="b")
        rnn.update_memory(before, new)
        rnn.output(new)
    return rnn()


@pytest.mark.parametrize("optimizer", [fluid.optimizer.SGD, fluid.optimizer.Adam])
def test_training_is_that_of_the_op(optimizer):
    """Losses of a few steps with batches of different lengths: by the loop, and by dynamic_gru."""
    losses = []
    for recurrent in (gru, lambda v, size: L.dynamic_gru(v, size, param_attr="w", bias_attr="b")):
        with static.program_guard(static.Program(), static.Program()), static.scope_guard(static.Scope()), \
                paddle.utils.unique_name.guard():
            static.default_startup_program().random_seed = 7
            x, y = static.data("x", [None, 2], "float32", lod_level=1), static.data("y", [None, 1], "float32")
            out = recurrent(L.fc(x, 12, param_attr="in", bias_attr=False), 4)
            loss = L.mean(L.square(L.fc(L.sequence_last_step(out), 1, param_attr="out") - y))
            test = static.default_main_program().clone(for_test=True)
            fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
            rate = L.exponential_decay(0.1, 2, 0.5, staircase=True)
            optimizer(rate, regularization=fluid.regularizer.L2Decay(1e-3)).minimize(loss)
            exe = static.Executor()
            exe.run(static.default_startup_program())
            parameters = {p.name: p for p in static.default_main_program().all_parameters()}
            random = np.random.RandomState(1)
            for name in ("w", "b", "in", "out"):
                parameters[name].set_value(random.randn(*parameters[name].shape).astype("float32") * 0.5)
            values = []
            for lengths in ([3, 1, 4], [2, 6], [8], [3, 1, 4], [5, 3]):
                feed = {"x": fluid.create_lod_tensor(ROWS, [lengths]), "y": np.ones((len(lengths), 1), "float32")}
                values += exe.run(feed=feed, fetch_list=[loss]) + exe.run(test, feed=feed, fetch_list=[loss])
            losses.append(np.concatenate(values))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_attention_over_a_source():
    """The decoder of the book's chapter on translation: a sentence is looked at in every step of another one."""
    def cell(x, hidden, source, projected):
        spread = L.sequence_expand(L.fc(hidden, 8, bias_attr=False), projected)
        weights = L.sequence_softmax(L.fc(L.elementwise_add(projected, spread), 1, bias_attr=False))
        context = L.sequence_pool(L.elementwise_mul(source, L.reshape(weights, [-1]), axis=0), "sum")
        return L.gru_unit(L.fc([x, context], 24, bias_attr=False), hidden, 24)[0]
    words, target, label = (static.data(n, [None, 1], "int64", lod_level=1) for n in ("words", "target", "label"))
    source = L.dynamic_gru(L.fc(L.embedding(words, [12, 8], is_sparse=True), 24), 8)
    first = L.fc(L.sequence_last_step(source), 8, act="tanh")
    projected = L.fc(source, 8, bias_attr=False)
    rnn = L.DynamicRNN()
    with rnn.block():
        x = rnn.step_input(L.embedding(target, [12, 8], is_sparse=True))
        before = rnn.memory(init=first, need_reorder=True)
        now = cell(x, before, rnn.static_input(source), rnn.static_input(projected))
        rnn.update_memory(before, now)
        rnn.output(L.fc(now, 12, act="softmax"))
    loss = L.mean(L.cross_entropy(rnn(), label))
    fluid.optimizer.Adam(0.02).minimize(loss)
    exe, random, losses = static.Executor(), np.random.RandomState(0), []
    exe.run(static.default_startup_program())
    feeder = fluid.DataFeeder([words, target, label], fluid.CPUPlace())
    for _ in range(150):
        batch = [random.randint(2, 12, random.randint(1, 5)).tolist() for _ in range(16)]
        samples = [(s, [0] + s[::-1], s[::-1] + [1]) for s in batch]  # the words from the last to the first
        losses.append(float(exe.run(feed=feeder.feed(samples), fetch_list=[loss])[0]))
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:5])


def test_static_rnn_over_any_number_of_steps():
    x = static.data("x", [None, None, 3], "float32")
    rnn = static.nn.StaticRNN()
    with rnn.step():
        word = rnn.step_input(L.transpose(x, [1, 0, 2]))
        before = rnn.memory(shape=[-1, 3], batch_ref=word)
        now = word + before
        rnn.update_memory(before, now)
        rnn.output(now)
    out, exe = L.transpose(rnn(), [1, 0, 2]), static.Executor()
    for steps in (1, 4, 2):
        values = RANDOM.randn(2, steps, 3).astype("float32")
        np.testing.assert_allclose(exe.run(feed={"x": values}, fetch_list=[out])[0], values.cumsum(1), rtol=1e-5, atol=1e-6)


class Decoder(L.RNNCell):
    """A cell of the script, with layers of its own, that looks at a source."""

    def __init__(self, size):
        self.size, self.gru = size, L.GRUCell(size)

    def call(self, inputs, hidden, source):
        context = L.reduce_mean(L.elementwise_mul(source, L.unsqueeze(L.fc(hidden, self.size, bias_attr=False), [1])), dim=1)
        return self.gru(L.concat([inputs, context], axis=1), hidden)


@pytest.mark.parametrize("steps", [None, 4])
def test_translation_by_cells(steps):
    """Training of the book's seq2seq: two cells over the source, and one of the script over the target."""
    src, trg, label = (static.data(n, [None, steps], "int64") for n in ("src", "trg", "label"))
    n, m = static.data("n", [None], "int64"), static.data("m", [None], "int64")
    embedded = fluid.embedding(src, [12, 8])
    both = [L.rnn(L.GRUCell(8), embedded, sequence_length=n, is_reverse=reverse) for reverse in (False, True)]
    source, state = L.concat([b[0] for b in both], axis=2), L.concat([b[1] for b in both], axis=1)
    states = [L.fc(state, 8, act="tanh")]
    _, (last, _) = L.rnn(L.LSTMCell(4), embedded, sequence_length=n)
    out, _ = L.rnn(Decoder(8), fluid.embedding(trg, [12, 8]), states[0], source=L.fc(source, 8, num_flatten_dims=2))
    count = len(static.default_main_program().all_parameters())
    logits = L.fc(L.concat([out, L.elementwise_mul(L.ones_like(out), L.unsqueeze(L.fc(last, 8), [1]))], axis=2), 12,
                  num_flatten_dims=2)
    costs = L.softmax_with_cross_entropy(logits, L.unsqueeze(label, [2]))
    mask = L.sequence_mask(m, maxlen=L.shape(trg)[1], dtype="float32")
    loss = L.reduce_sum(L.squeeze(costs, [2]) * mask) / L.reduce_sum(mask)
    fluid.optimizer.Adam(0.02).minimize(loss)
    assert count == 2 + 3 * 4 + 2 + 2 + 2 + 1  # embeddings, GRUs, LSTM, fc of states and source, of the decoder: once each
    exe, random, losses = static.Executor(), np.random.RandomState(0), []
    exe.run(static.default_startup_program())
    for _ in range(60):
        lengths = random.randint(1, 4, 16)
        longest = 4 if steps else lengths.max() + 1
        ids = np.zeros((3, 16, longest), "int64")
        for i, k in enumerate(lengths):
            words = random.randint(2, 12, k)
            ids[0, i, :k], ids[1, i, 1:k + 1], ids[2, i, :k + 1] = words, words[::-1], [*words[::-1], 1]
        feed = {"src": ids[0], "trg": ids[1], "label": ids[2], "n": lengths, "m": lengths + 1}
        losses.append(float(exe.run(feed=feed, fetch_list=[loss])[0]))
    assert np.mean(losses[-5:]) < 0.75 * np.mean(losses[:5])


def test_a_loop_over_what_another_one_gave():
    x = static.data("x", [None, None, 3], "float32")
    out, h = paddle.nn.GRU(3, 5, num_layers=2, direction="bidirect")(x)
    loss = paddle.mean(paddle.square(out))
    paddle.optimizer.Adam(0.01).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    for steps in (3, 1, 2):
        values = RANDOM.randn(2, steps, 3).astype("float32")
        got = exe.run(feed={"x": values}, fetch_list=[out, h, loss])
        assert got[0].shape == (2, steps, 10) and got[1].shape == (4, 2, 5)
        np.testing.assert_allclose(got[0][:, -1, :5], got[1][2], rtol=1e-5)
        np.testing.assert_allclose(got[0][:, 0, 5:], got[1][3], rtol=1e-5)


def test_what_cannot_be_done_is_named(tmp_path):
    x = static.data("x", [None, 2], "float32", lod_level=1)
    out = gru(L.fc(x, 12), 4)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    with pytest.raises(NotImplementedError, match="save_inference_model: the program has a loop.*nearest: save its parameters"):
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe)
    loss = L.mean(out)
    static.append_backward(loss)
    with pytest.raises(NotImplementedError, match="trained by one minimize"):
        exe.run(feed={"x": fluid.create_lod_tensor(ROWS, [LENGTHS])}, fetch_list=[loss])
    with pytest.raises(paddle.InvalidArgumentError, match="'y' has no sequences"):
        rnn = L.DynamicRNN()
        with rnn.block():
            rnn.step_input(static.data("y", [None, 2], "float32"))


def beams_of(table, weights, start, end, width, most):
    """Beam search over a table of words that follow each other, with a state that counts steps."""
    beams, scores = [[start]], [0.0]
    for step in range(most):
        found = []
        for beam, score in zip(beams, scores):
            if beam[-1] == end and len(beam) > 1:
                found.append((score, beam + [end]))
                continue
            logits = table[beam[-1]] + weights * step
            shares = logits - np.log(np.exp(logits).sum())
            found += [(score + s, beam + [w]) for w, s in enumerate(shares)]
        found.sort(key=lambda each: -each[0])
        scores, beams = zip(*found[:width])
    return [beam[1:] for beam in beams]


def test_beams():
    class Table(L.RNNCell):
        def call(self, inputs, states):
            word, count = inputs, states
            return L.elementwise_add(word, L.elementwise_mul(L.expand(count, [1, 7]), grow)), L.scale(count, 1.0, 1.0)
    values, growth = RANDOM.randn(7, 7).astype("float32"), np.zeros(7, "float32")
    growth[6] = 0.08  # the end becomes more likely with every step
    values[:, 6] -= 3
    count = static.data("count", [None, 1], "float32")
    grow = paddle.assign(growth)
    table = fluid.ParamAttr("table", initializer=fluid.initializer.NumpyArrayInitializer(values))
    decoder = L.BeamSearchDecoder(Table(), 0, 6, 3, lambda ids: fluid.embedding(ids, [7, 7], param_attr=table))
    words, state, lengths = L.dynamic_decode(decoder, count, max_step_num=40, return_length=True)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    got, counted = exe.run(feed={"count": np.zeros((2, 1), "float32")}, fetch_list=[words, lengths])
    assert got.shape == (2, 40, 3)
    wanted = beams_of(values, growth, 0, 6, 3, 40)
    for row in got:
        assert row.T.tolist() == wanted
    assert counted[0].tolist() == [sum(w != 6 for w in beam) for beam in wanted]
    tried = sorted(times[0] for times in static.default_main_program().family._made)
    assert tried[0] == 16 and tried[-1] <= 40  # twice as many until all have ended
    with pytest.raises(NotImplementedError, match="give max_step_num"):
        L.dynamic_decode(decoder, count)
