"""Tags of sequences: conditional random fields and chunks."""
import itertools

import numpy as np
import pytest

import paddle
import paddle.fluid as fluid
from paddle import static

L = fluid.layers
LENGTHS = [3, 1, 4]
ROWS = np.random.RandomState(0).randn(8, 3).astype("float32")
TAGS = np.array([0, 2, 1, 1, 0, 0, 2, 1])


def run(fetch, feed):
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch)


def scores(rows, w):
    """{tags: sum of their weights} of all ways to tag a sequence."""
    return {y: w[0, y[0]] + w[1, y[-1]] + sum(row[t] for row, t in zip(rows, y)) +
            sum(w[2 + a, b] for a, b in zip(y, y[1:])) for y in itertools.product(range(3), repeat=len(rows))}


@pytest.mark.parametrize("padded", [False, True])
def test_costs_and_best_tags(padded):
    parts, labels = np.split(ROWS, [3, 4]), np.split(TAGS, [3, 4])
    if padded:
        x, y = static.data("x", [None, 5, 3], "float32"), static.data("y", [None, 5], "int64")
        n = static.data("n", [None, 1], "int64")
        both = np.zeros((3, 5, 3), "float32"), np.zeros((3, 5), "int64")
        for i, (rows, tags) in enumerate(zip(parts, labels)):
            both[0][i, :len(rows)], both[1][i, :len(tags)] = rows, tags
        feed = {"x": both[0], "y": both[1], "n": np.array(LENGTHS)[:, None]}
    else:
        x = static.data("x", [None, 3], "float32", lod_level=1)
        y, n = static.data("y", [None, 1], "int64", lod_level=1), None
        feed = {"x": fluid.create_lod_tensor(ROWS, [LENGTHS]), "y": fluid.create_lod_tensor(TAGS[:, None], [LENGTHS])}
    cost = L.linear_chain_crf(x, y, fluid.ParamAttr("crfw", initializer=fluid.initializer.Normal()), n)
    path = L.crf_decoding(x, fluid.ParamAttr("crfw"), length=n)
    right = L.crf_decoding(x, fluid.ParamAttr("crfw"), y, n)
    got = run([cost, path, right], feed)
    w = static.global_scope().find_var("crfw").get_tensor().numpy()
    best = []
    for i, (rows, tags) in enumerate(zip(parts, labels)):
        of = scores(rows, w)
        wanted = np.log(sum(np.exp(s) for s in of.values())) - of[tuple(tags)]
        np.testing.assert_allclose(got[0][i, 0], wanted, rtol=1e-4)
        best.append(max(of, key=of.get))
    if padded:
        assert got[1].shape == (3, 5)
        assert [row[:n].tolist() for row, n in zip(got[1], LENGTHS)] == [list(b) for b in best]
    else:
        flat = [t for b in best for t in b]
        assert got[1].ravel().tolist() == flat
        assert got[2].ravel().tolist() == [int(a == b) for a, b in zip(flat, TAGS)]


def test_a_tagger_learns():
    """Net of the book's chapter on semantic roles, small: the tag of a word depends on the word before."""
    words = static.data("words", [None, 1], "int64", lod_level=1)
    target = static.data("target", [None, 1], "int64", lod_level=1)
    hidden = L.fc(L.embedding(words, [6, 8]), 32, act="tanh")
    lstm = L.dynamic_lstm(hidden, 32, candidate_activation="relu", gate_activation="sigmoid", cell_activation="sigmoid")
    feature = L.sums([L.fc(hidden, 3), L.fc(lstm, 3)])  # of the pair (hidden, cell), as that chapter has it
    cost = L.mean(L.linear_chain_crf(feature, target, fluid.ParamAttr("crfw", learning_rate=0.1)))
    decoded = L.crf_decoding(feature, fluid.ParamAttr(name="crfw"))
    precision, recall, f1, found, labelled, correct = L.chunk_eval(decoded, target, "IOB", 1)
    fluid.optimizer.Adam(0.02).minimize(cost)
    exe, random = fluid.Executor(), np.random.RandomState(0)
    exe.run(fluid.default_startup_program())
    feeder, metric = fluid.DataFeeder([words, target], fluid.CPUPlace()), fluid.metrics.ChunkEvaluator()
    for step in range(250):
        batch = []
        for _ in range(16):
            sentence = random.randint(0, 6, random.randint(2, 7))
            tags = [2] + [0 if sentence[i - 1] == 0 else 1 if sentence[i - 1] == 1 else 2 for i in range(1, len(sentence))]
            batch.append((sentence.tolist(), tags))
        values = exe.run(feed=feeder.feed(batch), fetch_list=[cost, found, labelled, correct, f1])
        if step >= 240:
            metric.update(*values[1:4])
    assert metric.eval()[2] > 0.95 and float(values[4]) > 0.9 and float(values[0]) < 1.0


def test_chunks_of_padded_tags():
    guess, label, n = (static.data(name, shape, "int64") for name, shape in (("guess", [None, 4]), ("label", [None, 4]), ("n", [None])))
    out = L.chunk_eval(guess, label, "IOB", 2, [1], n)
    feed = {"guess": np.array([[0, 1, 4, 0], [2, 3, 0, 4]]), "label": np.array([[0, 1, 4, 4], [2, 3, 0, 1]]), "n": np.array([3, 4])}
    got = [x.item() for x in run(list(out), feed)]
    # Of type 0: found (0-1), (2-2); labelled (0-1), (2-3); one is right.
    assert got == [0.5, 0.5, 0.5, 2, 2, 1]


def test_rows_without_sequences_are_refused():
    x = static.data("x", [None, 3], "float32")
    with pytest.raises(paddle.InvalidArgumentError, match="'x' has no sequences"):
        L.crf_decoding(x, "w")
